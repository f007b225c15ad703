"""openai (Python): Responses, plain and through its helpers."""

import json
from typing import Literal

import openai
from pydantic import BaseModel

from checks import (GREETING, KEY, MODEL, QUESTION, URL, WEATHER_PARAMETERS, WEATHER_RESULT, Checks,
                    expect, expect_equal, expect_hit, expect_weather, long_prompt)

client = openai.OpenAI(base_url=URL + "/v1", api_key=KEY, max_retries=0, timeout=120)
check = Checks()
TOOL = {"type": "function", "name": "get_weather", "description": "Tells the weather.",
        "parameters": WEATHER_PARAMETERS, "strict": False}
NAMED = {"type": "function", "name": "get_weather"}
NO_THINKING = {"effort": "none"}


class Weather(BaseModel):
    city: Literal["Paris", "Rome", "Berlin"]
    tomorrow: bool


def ask(given, **options):
    options = {"max_output_tokens": 64, "temperature": 0, "reasoning": NO_THINKING} | options
    return client.responses.create(model=MODEL, input=given, **options)


@check("plain answer")
def plain_answer():
    answer = ask(GREETING)
    expect_equal(answer.object, "response", "object")
    expect_equal(answer.status, "completed", "status")
    expect(answer.output_text, "there should be text", answer.output)
    expect(answer._request_id, "x-request-id should be there")
    usage = answer.usage
    expect_equal(usage.input_tokens + usage.output_tokens, usage.total_tokens, "total_tokens")
    expect(usage.input_tokens_details.cached_tokens is not None
           and usage.output_tokens_details.reasoning_tokens is not None, "details", usage)


@check("stream")
def stream():
    events = list(ask(GREETING, stream=True))
    expect_equal([event.sequence_number for event in events], list(range(len(events))),
                 "sequence numbers")
    expect_equal(events[0].type, "response.created", "the first event")
    expect_equal(events[-1].type, "response.completed", "the last event")
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    expect_equal(text, events[-1].response.output_text, "the text of the stream")
    expect_equal(text, ask(GREETING).output_text, "the text of the plain answer")


@check("stream() helper")
def stream_helper():
    with client.responses.stream(model=MODEL, input=GREETING, max_output_tokens=64, temperature=0,
                                 reasoning=NO_THINKING) as events:
        seen = [event.type for event in events]
        final = events.get_final_response()
    expect("response.output_text.delta" in seen, "text deltas", seen)
    expect(final.output_text, "the helper should gather the text", final.output)


@check("thinking, cut off")
def thinking():
    answer = ask(GREETING, reasoning={"effort": "low"}, max_output_tokens=2)
    expect_equal(answer.status, "incomplete", "status")
    expect_equal(answer.incomplete_details.reason, "max_output_tokens", "reason")
    expect_equal(answer.output[0].type, "reasoning", "the first item")
    expect(answer.output[0].content[0].text, "there should be reasoning", answer.output[0])
    events = list(ask(GREETING, reasoning={"effort": "low"}, max_output_tokens=2, stream=True))
    seen = [event.type for event in events]
    expect_equal(seen[-1], "response.incomplete", "the last event")
    expect("response.reasoning_text.delta" in seen, "reasoning deltas", seen)


@check("reasoning goes back")
def reasoning_back():
    given = [{"role": "user", "content": GREETING}]
    options = {"reasoning": {"effort": "low"}, "include": ["reasoning.encrypted_content"]}
    first = ask(given, **options)
    expect_equal(first.output[0].type, "reasoning", "the first item")
    after = ask(given + first.output + [{"role": "user", "content": GREETING}], **options)
    expect(after.output, "there should be an answer", after)


@check("tool call and its result")
def tool_call():
    given = [{"role": "user", "content": QUESTION}]
    answer = client.responses.create(model=MODEL, input=given, tools=[TOOL], tool_choice=NAMED,
                                     max_output_tokens=512)
    calls = [item for item in answer.output if item.type == "function_call"]
    expect_equal(len(calls), 1, "number of calls")
    expect_weather(json.loads(calls[0].arguments))
    given += answer.output
    given.append({"type": "function_call_output", "call_id": calls[0].call_id,
                  "output": WEATHER_RESULT})
    after = ask(given, tools=[TOOL], tool_choice="none")
    expect(after.output_text, "there should be an answer", after.output)


@check("tool call streamed through the helper")
def tool_call_stream():
    with client.responses.stream(model=MODEL, input=QUESTION, tools=[TOOL], tool_choice=NAMED,
                                 max_output_tokens=512) as events:
        done = [event for event in events
                if event.type == "response.function_call_arguments.done"]
        final = events.get_final_response()
    expect_equal(len(done), 1, "number of calls")
    expect_weather(json.loads(done[0].arguments))
    calls = [item for item in final.output if item.type == "function_call"]
    expect_equal(calls[0].arguments, done[0].arguments, "arguments of the final response")


@check("required calls")
def required_calls():
    answer = client.responses.create(model=MODEL, input=QUESTION, tools=[TOOL],
                                     tool_choice="required", max_output_tokens=512)
    calls = [item for item in answer.output if item.type == "function_call"]
    expect(calls, "there should be calls", answer.output)
    expect_equal(len({call.call_id for call in calls}), len(calls), "number of ids")


@check("structured output by parse()")
def structured_output():
    answer = client.responses.parse(model=MODEL, input=QUESTION, text_format=Weather,
                                    max_output_tokens=512, reasoning=NO_THINKING)
    expect(isinstance(answer.output_parsed, Weather), "the answer should be parsed", answer.output)


@check("second turn hits")
def second_turn():
    options = {"model": MODEL, "instructions": long_prompt("openai responses"), "store": False,
               "reasoning": NO_THINKING, "temperature": 0}
    given = [{"role": "user", "content": GREETING}]
    with client.responses.stream(input=given, max_output_tokens=512, **options) as events:
        first = events.get_final_response()
    expect(first.usage.input_tokens_details.cached_tokens < 200, "the first turn should be new",
           first.usage)
    given += first.output
    given.append({"role": "user", "content": "I feel tired."})
    usage = client.responses.create(input=given, max_output_tokens=32, **options).usage
    expect_hit(usage.input_tokens_details.cached_tokens, usage.input_tokens)


@check("errors")
def errors():
    for wrong in ({"model": "no-such-model", "input": GREETING},
                  {"model": MODEL, "input": [{"role": "user", "content": [
                      {"type": "input_image"}]}]},
                  {"model": MODEL, "input": GREETING, "tool_choice": "required"}):
        try:
            client.responses.create(**wrong)
        except openai.APIStatusError as error:
            expect(error.status_code in (400, 404), "the status should be 400 or 404",
                   error.status_code)
            expect(isinstance(error.body, dict) and error.body.get("message"),
                   "the error should have a message", error.body)
        else:
            raise AssertionError(f"{wrong} should be refused")


check.finish()
