"""LangChain ChatOpenAI over Chat Completions."""

from langchain_openai import ChatOpenAI

from checks import KEY, MODEL, URL
from langchain_session import run_session

OPTIONS = {"model": MODEL, "base_url": URL + "/v1", "api_key": KEY, "max_tokens": 512,
           "temperature": 0, "max_retries": 0, "stream_usage": True}
PLAIN = ChatOpenAI(extra_body={"thinking": {"type": "disabled"}}, **OPTIONS)
THINKING = ChatOpenAI(**OPTIONS | {"max_tokens": 8})
run_session("langchain openai", (PLAIN, THINKING, PLAIN), ["json_schema", "function_calling"])
