"""openai (Python): Chat Completions, completions and models."""

import asyncio
import json
from typing import Literal

import openai
from pydantic import BaseModel

from checks import (GREETING, KEY, MODEL, QUESTION, URL, WEATHER_PARAMETERS, WEATHER_RESULT, Checks,
                    expect, expect_equal, expect_hit, expect_weather, long_prompt)

client = openai.OpenAI(base_url=URL + "/v1", api_key=KEY, max_retries=0, timeout=120)
check = Checks()
NO_THINKING = {"thinking": {"type": "disabled"}}
TOOL = {"type": "function", "function": {"name": "get_weather", "description": "Tells the weather.",
                                         "parameters": WEATHER_PARAMETERS}}
NAMED = {"type": "function", "function": {"name": "get_weather"}}


class Weather(BaseModel):
    city: Literal["Paris", "Rome", "Berlin"]
    tomorrow: bool


def ask(messages, **options):
    options = {"max_tokens": 32, "temperature": 0, "extra_body": NO_THINKING} | options
    return client.chat.completions.create(model=MODEL, messages=messages, **options)


def user(text):
    return {"role": "user", "content": text}


@check("models")
def models():
    listed = [model.id for model in client.models.list()]
    expect(MODEL in listed, f"{MODEL} should be listed", listed)
    expect_equal(client.models.retrieve(MODEL).id, MODEL, "the id of the model")


@check("plain answer")
def plain_answer():
    answer = ask([user(GREETING)])
    expect_equal(answer.object, "chat.completion", "object")
    expect(answer._request_id, "x-request-id should be there", answer._request_id)
    choice, usage = answer.choices[0], answer.usage
    expect(choice.message.content, "there should be content", choice.message)
    expect_equal(choice.finish_reason, "stop", "finish_reason")
    expect_equal(usage.prompt_tokens + usage.completion_tokens, usage.total_tokens, "total_tokens")
    expect_equal(usage.prompt_cache_hit_tokens + usage.prompt_cache_miss_tokens,
                 usage.prompt_tokens, "hits and misses together")
    expect_equal(usage.prompt_tokens_details.cached_tokens, usage.prompt_cache_hit_tokens,
                 "cached_tokens")


@check("base without /v1")
def bare_base():
    other = client.with_options(base_url=URL)
    answer = other.chat.completions.create(model=MODEL, messages=[user(GREETING)], max_tokens=4)
    expect_equal(answer.model, MODEL, "model")


@check("stream")
def stream():
    chunks = list(ask([user(GREETING)], stream=True, stream_options={"include_usage": True}))
    expect_equal({chunk.object for chunk in chunks}, {"chat.completion.chunk"}, "object")
    expect_equal(len({(chunk.id, chunk.created) for chunk in chunks}), 1, "number of ids")
    choices = [chunk.choices[0] for chunk in chunks if chunk.choices]
    roles = [choice.delta.role for choice in choices if choice.delta.role]
    expect_equal(roles, ["assistant"], "roles")
    finishes = [choice.finish_reason for choice in choices if choice.finish_reason]
    expect_equal(finishes, ["stop"], "finish reasons")
    expect_equal(len([chunk for chunk in chunks if chunk.usage]), 1, "number of usages")
    expect_equal("".join(choice.delta.content or "" for choice in choices),
                 ask([user(GREETING)]).choices[0].message.content, "the text of the stream")


@check("stream() helper")
def stream_helper():
    with client.chat.completions.stream(model=MODEL, messages=[user(GREETING)], max_tokens=64,
                                        temperature=0, extra_body=NO_THINKING) as events:
        seen = {event.type for event in events}
        final = events.get_final_completion()
    expect({"chunk", "content.delta", "content.done"} <= seen, "content events", seen)
    expect(final.choices[0].message.content, "the helper should gather the text", final)
    expect_equal(final.choices[0].message.role, "assistant", "role")


@check("thinking")
def thinking():
    answer = ask([user(GREETING)], extra_body={"thinking": {"type": "enabled"}}, max_tokens=8)
    expect(answer.choices[0].message.reasoning_content, "there should be reasoning_content",
           answer.choices[0].message)
    deltas = [chunk.choices[0].delta for chunk in ask([user(GREETING)], extra_body={}, stream=True,
                                                      max_tokens=8) if chunk.choices]
    text = "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas)
    expect(text, "reasoning should be streamed", deltas)


def result_turn(messages, message):
    results = [{"role": "tool", "tool_call_id": call.id, "content": WEATHER_RESULT}
               for call in message.tool_calls]
    return messages + [message.model_dump(exclude_none=True)] + results


@check("tool call and its result")
def tool_call():
    messages = [user(QUESTION)]
    answer = ask(messages, tools=[TOOL], tool_choice=NAMED, max_tokens=512, extra_body={})
    expect_equal(answer.choices[0].finish_reason, "tool_calls", "finish_reason")
    call = answer.choices[0].message.tool_calls[0]
    expect_equal(call.function.name, "get_weather", "name")
    expect_weather(json.loads(call.function.arguments))
    expect_equal(call.function.arguments,
                 json.dumps(json.loads(call.function.arguments), separators=(",", ":")),
                 "arguments, compact")
    after = ask(result_turn(messages, answer.choices[0].message), tools=[TOOL], tool_choice="none")
    expect(after.choices[0].message.content, "there should be an answer", after.choices[0])


@check("tool call streamed through the helper")
def tool_call_stream():
    with client.chat.completions.stream(model=MODEL, messages=[user(QUESTION)], tools=[TOOL],
                                        tool_choice=NAMED, max_tokens=512) as events:
        done = [event for event in events if event.type == "tool_calls.function.arguments.done"]
        final = events.get_final_completion()
    expect_equal(len(done), 1, "number of calls")
    expect_weather(json.loads(done[0].arguments))
    call = final.choices[0].message.tool_calls[0]
    expect_equal(call.function.name, "get_weather", "name")
    expect_equal(final.choices[0].finish_reason, "tool_calls", "finish_reason")


@check("required calls, parallel results")
def parallel_calls():
    answer = ask([user(QUESTION)], tools=[TOOL], tool_choice="required", max_tokens=512,
                 extra_body={})
    calls = answer.choices[0].message.tool_calls
    expect(calls, "there should be calls", answer.choices[0])
    expect_equal(len({call.id for call in calls}), len(calls), "number of ids")
    check.note(f"{len(calls)} call(s) under tool_choice required")
    two = [{"id": f"call_{index}", "type": "function", "function": {
        "name": "get_weather", "arguments": json.dumps({"city": city, "tomorrow": False})}}
        for index, city in enumerate(["Paris", "Rome"])]
    messages = [user(QUESTION), {"role": "assistant", "content": None, "tool_calls": two}]
    messages += [{"role": "tool", "tool_call_id": call["id"], "content": WEATHER_RESULT}
                 for call in two]
    expect(ask(messages, tools=[TOOL], tool_choice="none").choices[0].message.content,
           "two calls and their results should be answered")


@check("strict tool by pydantic")
def strict_tool():
    answer = client.chat.completions.parse(
        model=MODEL, messages=[user(QUESTION)], tools=[openai.pydantic_function_tool(Weather)],
        tool_choice={"type": "function", "function": {"name": "Weather"}}, max_tokens=512)
    parsed = answer.choices[0].message.tool_calls[0].function.parsed_arguments
    expect(isinstance(parsed, Weather), "the arguments should be parsed", parsed)


@check("structured output")
def structured_output():
    answer = client.chat.completions.parse(model=MODEL, messages=[user(QUESTION)], max_tokens=512,
                                           response_format=Weather, extra_body=NO_THINKING)
    expect(isinstance(answer.choices[0].message.parsed, Weather), "the answer should be parsed",
           answer.choices[0].message)
    loose = ask([user("Say it as JSON.")], response_format={"type": "json_object"}, max_tokens=64)
    content = loose.choices[0].message.content
    expect(content.lstrip().startswith("{"), "json_object should begin an object", content)
    if loose.choices[0].finish_reason == "stop":
        json.loads(content)


@check("second turn hits")
def second_turn():
    messages = [{"role": "system", "content": long_prompt("openai chat")}, user(GREETING)]
    with client.chat.completions.stream(model=MODEL, messages=messages, max_tokens=512,
                                        temperature=0, extra_body=NO_THINKING) as events:
        first = events.get_final_completion()
    expect(first.usage.prompt_cache_hit_tokens < 200, "the first turn should be new", first.usage)
    messages.append(first.choices[0].message.model_dump(exclude_none=True))
    messages.append(user("I feel tired."))
    chunks = list(ask(messages, stream=True))
    usage = chunks[-1].usage
    expect(usage, "the last chunk should have usage", chunks[-1])
    expect_hit(usage.prompt_tokens_details.cached_tokens, usage.prompt_tokens)


@check("logprobs")
def logprobs():
    answer = ask([user(GREETING)], logprobs=True, top_logprobs=3, max_tokens=4)
    entries = answer.choices[0].logprobs.content
    expect_equal(len(entries), answer.usage.completion_tokens, "number of logprobs")
    expect(all(len(entry.top_logprobs) == 3 for entry in entries), "three of each", entries)


def expect_refusal(kind, call, statuses):
    try:
        call()
    except kind as error:
        expect(error.status_code in statuses, f"the status should be in {statuses}",
               error.status_code)
        body = error.body
        expect(isinstance(body, dict) and body.get("message") and body.get("type"),
               "the error should have message and type", body)
        return body
    raise AssertionError(f"the request should fail with {kind.__name__}")


@check("errors")
def errors():
    body = expect_refusal(openai.APIStatusError, lambda: client.chat.completions.create(
        model="no-such-model", messages=[user(GREETING)]), (400, 404))
    expect("no-such-model" in body["message"], "the message should name the model", body)
    expect_refusal(openai.BadRequestError, lambda: ask([]), (400,))
    expect_refusal(openai.APIStatusError, lambda: ask([user(GREETING)], temperature=9), (400, 422))
    body = expect_refusal(openai.BadRequestError, lambda: ask(
        [user(GREETING)], tools=[TOOL], tool_choice="required",
        extra_body={"thinking": {"type": "enabled"}}), (400,))
    expect("think" in body["message"], "the message should speak of thinking", body)
    body = expect_refusal(openai.AuthenticationError, lambda: client.with_options(
        api_key="wrong").models.list(), (401,))
    expect_equal(body.get("code"), "invalid_api_key", "code")


@check("a stream that the client leaves")
def left_stream():
    left = ask([user(GREETING)], stream=True, max_tokens=2000, extra_body={"ignore_eos": True})
    next(iter(left))
    left.close()
    expect(ask([user(GREETING)]).choices, "the next request should be answered")


@check("many at a time")
def many():
    async def ask_all():
        async with openai.AsyncOpenAI(base_url=URL + "/v1", api_key=KEY, max_retries=0) as other:
            return await asyncio.gather(*(other.chat.completions.create(
                model=MODEL, messages=[user(GREETING)], max_tokens=32, temperature=0,
                extra_body=NO_THINKING) for _ in range(8)))
    texts = {answer.choices[0].message.content for answer in asyncio.run(ask_all())}
    expect_equal(len(texts), 1, "number of different answers at temperature 0")


@check("completions")
def completions():
    answer = client.completions.create(model=MODEL, prompt="My cat is called", max_tokens=8)
    expect_equal(answer.object, "text_completion", "object")
    expect(isinstance(answer.choices[0].text, str), "there should be text", answer.choices[0])
    chunks = list(client.completions.create(model=MODEL, prompt="My cat is called", max_tokens=8,
                                            stream=True))
    finishes = [chunk.choices[0].finish_reason for chunk in chunks
                if chunk.choices and chunk.choices[0].finish_reason]
    expect_equal(len(finishes), 1, "number of finish reasons")


check.finish()
