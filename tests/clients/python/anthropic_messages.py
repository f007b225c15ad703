"""anthropic (Python): Messages, its helpers, token counts and models."""

from typing import Literal

import anthropic
from pydantic import BaseModel

from checks import (GREETING, KEY, MODEL, QUESTION, URL, WEATHER_PARAMETERS, WEATHER_RESULT, Checks,
                    expect, expect_equal, expect_hit, expect_weather, long_prompt)

client = anthropic.Anthropic(base_url=URL + "/anthropic", api_key=KEY, max_retries=0, timeout=120)
check = Checks()
TOOL = {"name": "get_weather", "description": "Tells the weather.",
        "input_schema": WEATHER_PARAMETERS}
NAMED = {"type": "tool", "name": "get_weather"}
NO_THINKING = {"type": "disabled"}
GREEDY = {"temperature": 0}  # no parameter of this version


class Weather(BaseModel):
    city: Literal["Paris", "Rome", "Berlin"]
    tomorrow: bool


def user(content):
    return {"role": "user", "content": content}


def ask(messages, **options):
    options = {"max_tokens": 64, "thinking": NO_THINKING, "extra_body": GREEDY} | options
    return client.messages.create(model=MODEL, messages=messages, **options)


@check("models")
def models():
    listed = [model.id for model in client.models.list()]
    expect(MODEL in listed, f"{MODEL} should be listed", listed)
    model = client.models.retrieve(MODEL)
    expect_equal((model.id, model.type), (MODEL, "model"), "id and type")
    expect(model.display_name and model.created_at, "display_name and created_at", model)


@check("plain answer")
def plain_answer():
    answer = ask([user(GREETING)])
    expect_equal((answer.type, answer.role), ("message", "assistant"), "type and role")
    expect_equal(answer.stop_reason, "end_turn", "stop_reason")
    expect(answer.content[0].text, "there should be text", answer.content)
    expect(answer.usage.output_tokens > 0, "output tokens", answer.usage)


@check("bearer token, /v1/messages without the /anthropic base")
def bearer():
    other = anthropic.Anthropic(base_url=URL, auth_token=KEY, api_key=None, max_retries=0)
    answer = other.messages.create(model=MODEL, messages=[user(GREETING)], max_tokens=4,
                                   thinking=NO_THINKING)
    expect_equal(answer.stop_reason, "max_tokens", "stop_reason")


@check("a Claude name")
def claude_name():
    answer = client.messages.create(model="claude-opus-4-1", messages=[user(GREETING)],
                                    max_tokens=4, thinking=NO_THINKING)
    expect_equal(answer.type, "message", "type")


@check("stream")
def stream():
    events = list(ask([user(GREETING)], stream=True))
    kinds = [event.type for event in events if event.type != "ping"]
    expect_equal((kinds[0], kinds[1]), ("message_start", "content_block_start"), "first events")
    expect_equal(kinds[-3:], ["content_block_stop", "message_delta", "message_stop"],
                 "last events")
    expect_equal(kinds.count("message_delta"), 1, "number of message_delta")


@check("stream() helper")
def stream_helper():
    with client.messages.stream(model=MODEL, messages=[user(GREETING)], max_tokens=64,
                                extra_body=GREEDY, thinking=NO_THINKING) as events:
        text = "".join(events.text_stream)
        final = events.get_final_message()
    expect_equal(text, ask([user(GREETING)]).content[0].text, "the text of the stream")
    expect_equal(final.stop_reason, "end_turn", "stop_reason")
    expect(final.usage.input_tokens + final.usage.cache_read_input_tokens > 0, "usage", final.usage)


@check("thinking")
def thinking():
    for kind in ({"type": "enabled", "budget_tokens": 1024}, {"type": "adaptive"}):
        answer = ask([user(GREETING)], thinking=kind, max_tokens=8)
        expect_equal(answer.content[0].type, "thinking", "the first block")
        expect(answer.content[0].thinking, "there should be thinking", answer.content)
    with client.messages.stream(model=MODEL, messages=[user(GREETING)], max_tokens=8,
                                thinking={"type": "adaptive"}) as events:
        kinds = {event.type for event in events}
        final = events.get_final_message()
    expect("thinking" in kinds, "thinking should be streamed", kinds)
    expect_equal(final.content[0].type, "thinking", "the first block")


@check("thinking goes back")
def thinking_back():
    messages = [user(GREETING)]
    options = {"thinking": {"type": "adaptive"}, "max_tokens": 32}
    messages.append({"role": "assistant", "content": ask(messages, **options).content})
    messages.append(user(GREETING))
    expect(ask(messages, **options).content, "there should be an answer")


@check("tool call and its result")
def tool_call():
    messages = [user(QUESTION)]
    answer = client.messages.create(model=MODEL, messages=messages, tools=[TOOL], tool_choice=NAMED,
                                    max_tokens=512)
    expect_equal(answer.stop_reason, "tool_use", "stop_reason")
    calls = [block for block in answer.content if block.type == "tool_use"]
    expect_equal(len(calls), 1, "number of calls")
    expect_weather(calls[0].input)
    messages.append({"role": "assistant", "content": answer.content})
    messages.append(user([{"type": "tool_result", "tool_use_id": calls[0].id,
                           "content": WEATHER_RESULT}]))
    after = ask(messages, tools=[TOOL])
    expect(after.content, "there should be an answer", after)


@check("tool call streamed through the helper")
def tool_call_stream():
    with client.messages.stream(model=MODEL, messages=[user(QUESTION)], tools=[TOOL],
                                tool_choice={"type": "any"}, max_tokens=512) as events:
        seen = [event.type for event in events]
        final = events.get_final_message()
    expect("input_json" in seen, "the arguments should be streamed", sorted(set(seen)))
    calls = [block for block in final.content if block.type == "tool_use"]
    expect(calls, "there should be calls", final.content)
    expect_equal(len({call.id for call in calls}), len(calls), "number of ids")
    for call in calls:
        expect_weather(call.input)


@check("parallel results")
def parallel_results():
    calls = [{"type": "tool_use", "id": f"call_{index}", "name": "get_weather",
              "input": {"city": city, "tomorrow": False}}
             for index, city in enumerate(["Paris", "Rome"])]
    results = [{"type": "tool_result", "tool_use_id": call["id"], "content": [
        {"type": "text", "text": WEATHER_RESULT}]} for call in calls]
    answer = ask([user(QUESTION), {"role": "assistant", "content": calls}, user(results)],
                 tools=[TOOL])
    expect(answer.content, "two calls and their results should be answered", answer)


@check("structured output by parse()")
def structured_output():
    answer = client.messages.parse(model=MODEL, messages=[user(QUESTION)], max_tokens=512,
                                   output_format=Weather, thinking=NO_THINKING)
    expect(isinstance(answer.parsed_output, Weather), "the answer should be parsed",
           answer.content)


@check("stop sequence")
def stop_sequence():
    text = ask([user(GREETING)]).content[0].text
    word = text.split()[-1]
    answer = ask([user(GREETING)], stop_sequences=[word])
    expect_equal((answer.stop_reason, answer.stop_sequence), ("stop_sequence", word), "the stop")


@check("count_tokens")
def count_tokens():
    messages = [user(GREETING)]
    counted = client.messages.count_tokens(model=MODEL, messages=messages, thinking=NO_THINKING)
    usage = ask(messages).usage
    expect_equal(counted.input_tokens, usage.input_tokens + usage.cache_read_input_tokens,
                 "input_tokens")


@check("second turn hits")
def second_turn():
    system = [{"type": "text", "text": long_prompt("anthropic messages"),
               "cache_control": {"type": "ephemeral"}}]
    messages = [user(GREETING)]
    with client.messages.stream(model=MODEL, messages=messages, system=system, max_tokens=64,
                                thinking=NO_THINKING) as events:
        first = events.get_final_message()
    expect(first.usage.cache_read_input_tokens < 200, "the first turn should be new", first.usage)
    messages.append({"role": "assistant", "content": first.content})
    messages.append(user("I feel tired."))
    usage = ask(messages, system=system, max_tokens=32).usage
    expect_hit(usage.cache_read_input_tokens,
               usage.input_tokens + usage.cache_read_input_tokens
               + (usage.cache_creation_input_tokens or 0))


@check("errors")
def errors():
    for wrong, kind in (({"model": "no-such-model"}, anthropic.APIStatusError),
                        ({"messages": []}, anthropic.BadRequestError)):
        given = {"model": MODEL, "messages": [user(GREETING)], "max_tokens": 4} | wrong
        try:
            client.messages.create(**given)
        except kind as error:
            expect(error.status_code in (400, 404), "the status should be 400 or 404",
                   error.status_code)
            expect_equal(error.body.get("type"), "error", "type")
            expect(error.body["error"].get("message") and error.body["error"].get("type"),
                   "the error should have message and type", error.body)
        else:
            raise AssertionError(f"{wrong} should be refused")
    try:
        client.with_options(api_key="wrong").messages.create(
            model=MODEL, messages=[user(GREETING)], max_tokens=4)
    except anthropic.AuthenticationError:
        return
    raise AssertionError("a wrong key should be refused")


check.finish()
