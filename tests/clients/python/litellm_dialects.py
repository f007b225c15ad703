"""litellm over its three dialects: openai/ (chat and Responses), deepseek/ and anthropic/."""

import json

import litellm

from checks import (GREETING, KEY, MODEL, QUESTION, URL, WEATHER_PARAMETERS, WEATHER_RESULT, Checks,
                    expect, expect_equal, expect_hit, expect_weather, long_prompt)

check = Checks()
TOOL = {"type": "function", "function": {"name": "get_weather", "description": "Tells the weather.",
                                         "parameters": WEATHER_PARAMETERS}}
NAMED = {"type": "function", "function": {"name": "get_weather"}}
ROUTES = {
    "openai": {"model": "openai/" + MODEL, "api_base": URL + "/v1",
               "extra_body": {"thinking": {"type": "disabled"}}},
    "deepseek": {"model": "deepseek/" + MODEL, "api_base": URL,
                 "extra_body": {"thinking": {"type": "disabled"}}},
    "anthropic": {"model": "anthropic/" + MODEL, "api_base": URL + "/anthropic",
                  "thinking": {"type": "disabled"}, "allowed_openai_params": ["thinking"]},
}


def user(text):
    return {"role": "user", "content": text}


def ask(route, messages, **options):
    options = {"max_tokens": 64, "temperature": 0, "num_retries": 0, "timeout": 120} | options
    return litellm.completion(messages=messages, api_key=KEY, **ROUTES[route], **options)


def plain_answer(route):
    answer = ask(route, [user(GREETING)])
    expect(answer.choices[0].message.content, "there should be content", answer.choices[0])
    expect_equal(answer.usage.prompt_tokens + answer.usage.completion_tokens,
                 answer.usage.total_tokens, "total_tokens")


def stream(route):
    chunks = list(ask(route, [user(GREETING)], stream=True,
                      stream_options={"include_usage": True}))
    whole = litellm.stream_chunk_builder(chunks)
    expect_equal(whole.choices[0].message.content,
                 ask(route, [user(GREETING)]).choices[0].message.content, "the text of the stream")


def tool_call(route):
    messages = [user(QUESTION)]
    answer = ask(route, messages, tools=[TOOL], tool_choice=NAMED, max_tokens=512)
    expect_equal(answer.choices[0].finish_reason, "tool_calls", "finish_reason")
    call = answer.choices[0].message.tool_calls[0]
    expect_weather(json.loads(call.function.arguments))
    messages.append(answer.choices[0].message.model_dump(exclude_none=True))
    messages.append({"role": "tool", "tool_call_id": call.id, "content": WEATHER_RESULT})
    after = ask(route, messages, tools=[TOOL])
    expect(after.choices[0].message.content, "there should be an answer", after.choices[0])


def tool_call_stream(route):
    chunks = list(ask(route, [user(QUESTION)], tools=[TOOL], tool_choice="required", stream=True,
                      max_tokens=512))
    calls = litellm.stream_chunk_builder(chunks).choices[0].message.tool_calls
    expect(calls, "there should be calls")
    for call in calls:
        expect_weather(json.loads(call.function.arguments))


def second_turn(route):
    messages = [{"role": "system", "content": long_prompt("litellm " + route)}, user(GREETING)]
    first = ask(route, messages)
    messages.append({"role": "assistant", "content": first.choices[0].message.content})
    messages.append(user("I feel tired."))
    usage = ask(route, messages).usage
    expect_hit(usage.prompt_tokens_details.cached_tokens, usage.prompt_tokens)


for name in ROUTES:
    for step in (plain_answer, stream, tool_call, tool_call_stream, second_turn):
        check(f"{name}: {step.__name__}")(lambda name=name, step=step: step(name))


@check("responses")
def responses():
    answer = litellm.responses(model="openai/" + MODEL, input=GREETING, api_base=URL + "/v1",
                               api_key=KEY, max_output_tokens=64, reasoning={"effort": "none"})
    expect_equal(answer.status, "completed", "status")


@check("errors")
def errors():
    try:
        litellm.completion(model="openai/no-such-model", messages=[user(GREETING)],
                           api_base=URL + "/v1", api_key=KEY, num_retries=0)
    except (litellm.BadRequestError, litellm.NotFoundError) as error:
        expect("no-such-model" in str(error), "the message should name the model", str(error))
        return
    raise AssertionError("an unknown model should be refused")


check.finish()
