"""One session for each of LangChain's chat models: a script names the model and its options."""

from typing import Literal

from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from pydantic import BaseModel

from checks import (GREETING, QUESTION, WEATHER_RESULT, Checks, expect, expect_equal, expect_hit,
                    expect_weather, long_prompt)


class Weather(BaseModel):
    """The weather of a city."""

    city: Literal["Paris", "Rome", "Berlin"]
    tomorrow: bool


@tool
def get_weather(city: Literal["Paris", "Rome", "Berlin"], tomorrow: bool) -> str:
    """Tells the weather."""
    return f"{WEATHER_RESULT} {city} {tomorrow}"


def run_session(name, models, structured):
    """`models`: (plain without thinking, with thinking, for forced calls); `structured`: the ways
    to ask for a schema."""
    check = Checks()
    model, thinking, forced = models

    @check("plain answer")
    def plain_answer():
        answer = model.invoke([HumanMessage(GREETING)])
        expect(answer.text, "there should be text", answer)
        usage = answer.usage_metadata
        expect_equal(usage["input_tokens"] + usage["output_tokens"], usage["total_tokens"],
                     "total_tokens")

    @check("stream")
    def stream():
        chunks = list(model.stream([HumanMessage(GREETING)]))
        whole = chunks[0]
        for chunk in chunks[1:]:
            whole += chunk
        expect_equal(whole.text, model.invoke([HumanMessage(GREETING)]).text,
                     "the text of the stream")
        expect(whole.usage_metadata, "there should be usage", whole)

    @check("thinking")
    def with_thinking():
        answer = thinking.invoke([HumanMessage(GREETING)])
        expect(answer.usage_metadata["output_tokens"] > 0, "there should be an answer", answer)

    @check("tool call and its result")
    def tool_call():
        bound = forced.bind_tools([get_weather], tool_choice="get_weather")
        messages = [HumanMessage(QUESTION)]
        answer = bound.invoke(messages)
        expect_equal(len(answer.tool_calls), 1, "number of calls")
        call = answer.tool_calls[0]
        expect_weather(call["args"])
        messages += [answer, ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"])]
        after = model.invoke(messages)
        expect(after.text, "there should be an answer", after)

    @check("tool call, streamed")
    def tool_call_stream():
        bound = forced.bind_tools([get_weather], tool_choice="any")
        whole = None
        for chunk in bound.stream([HumanMessage(QUESTION)]):
            whole = chunk if whole is None else whole + chunk
        expect(whole.tool_calls, "there should be calls", whole)
        for call in whole.tool_calls:
            expect_weather(call["args"])

    for method in structured:
        @check(f"structured output by {method}")
        def structured_output(method=method):
            asked = forced if method == "function_calling" else model
            answer = asked.with_structured_output(Weather, method=method).invoke(QUESTION)
            expect(isinstance(answer, Weather), "the answer should be parsed", answer)

    @check("second turn hits")
    def second_turn():
        messages = [SystemMessage(long_prompt(name)), HumanMessage(GREETING)]
        messages += [model.invoke(messages), HumanMessage("I feel tired.")]
        usage = model.invoke(messages).usage_metadata
        expect_hit(usage["input_token_details"].get("cache_read"), usage["input_tokens"])

    check.finish()
