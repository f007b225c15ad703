"""LangChain ChatAnthropic over Messages."""

from langchain_anthropic import ChatAnthropic

from checks import KEY, MODEL, URL
from langchain_session import run_session

OPTIONS = {"model": MODEL, "base_url": URL + "/anthropic", "api_key": KEY, "max_retries": 0}
PLAIN = ChatAnthropic(max_tokens=512, thinking={"type": "disabled"}, **OPTIONS)
THINKING = ChatAnthropic(max_tokens=1100, thinking={"type": "enabled", "budget_tokens": 1024},
                         **OPTIONS)
FORCED = ChatAnthropic(max_tokens=512, **OPTIONS)
run_session("langchain anthropic", (PLAIN, THINKING, FORCED), ["json_schema", "function_calling"])
