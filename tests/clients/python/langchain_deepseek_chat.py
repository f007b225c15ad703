"""LangChain ChatDeepSeek. A forced call goes out without `thinking`, as LangChain sends it."""

from langchain_deepseek import ChatDeepSeek

from checks import KEY, MODEL, URL
from langchain_session import run_session

OPTIONS = {"model": MODEL, "api_base": URL + "/v1", "api_key": KEY, "max_tokens": 512,
           "temperature": 0, "max_retries": 0, "stream_usage": True}
PLAIN = ChatDeepSeek(extra_body={"thinking": {"type": "disabled"}}, **OPTIONS)
THINKING = ChatDeepSeek(**OPTIONS | {"max_tokens": 8})
run_session("langchain deepseek", (PLAIN, THINKING, ChatDeepSeek(**OPTIONS)), ["function_calling"])
