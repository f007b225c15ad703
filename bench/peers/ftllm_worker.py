"""Answers one prompt per line of standard input with fastllm: {"ids": [...], "tokens": N}.

Prints {"prompt_s": ..., "answer_s": ..., "tokens": ...} per line. fastllm itself writes to the
descriptor of standard output while it loads, so results go to descriptor 3.
"""

import json
import os
import sys
import time


def main():
    results = os.fdopen(3, "w", buffering=1)
    from ftllm import llm

    start = time.monotonic()
    llm.set_cpu_threads(int(sys.argv[2]))
    llm.set_device_map("cpu")
    model = llm.model(sys.argv[1])
    print(json.dumps({"load_s": time.monotonic() - start}), file=results)
    for line in sys.stdin:
        request = json.loads(line)
        start = time.monotonic()
        first = None
        count = 0
        for _ in model.stream_response_raw(request["ids"], max_length=request["tokens"],
                                           do_sample=False):
            count += 1
            if first is None:
                first = time.monotonic()
        end = time.monotonic()
        first = first or end
        print(json.dumps({"prompt_s": first - start, "answer_s": end - first, "tokens": count}),
              file=results)


if __name__ == "__main__":
    main()
