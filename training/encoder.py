"""Conversations to token ids, loss weights and the spans of the answers."""
import prompt

PAD_ID = 2
CHAT = prompt.Mode()
STRIDE = 24  # long replies get a further start every so many tokens
CACHED_PARTS = 200_000


class Encoder:
    """Text to ids, with every piece between two spaces remembered: the splits of the tokenizer never reach across a
    single space."""

    def __init__(self, tokenizer):
        self.tokenizer, self.parts, self.runs = tokenizer, {}, {}
        names = (prompt.BOS, prompt.EOS, prompt.PAD, prompt.USER, prompt.ASSISTANT, prompt.SYSTEM, prompt.THINK,
                 prompt.THINK_END, prompt.DSML)
        self.control = {name: tokenizer.token_to_id(name) for name in names}
        self.eos = self.control[prompt.EOS]

    def _encoded(self, text):
        encoding = self.tokenizer.encode(text, add_special_tokens=False)
        return encoding.ids, [end for _, end in encoding.offsets]

    def plain(self, text):
        """Ids of plain text, and where each of its tokens ends, in characters."""
        if "\n" in text or "  " in text or text[0] == " " or text[-1] == " ":
            if text not in self.runs:
                self.runs[text] = self._encoded(text)
            return self.runs[text]
        ids, ends, at = [], [], 0
        words = text.split(" ")
        for i, word in enumerate(words):
            part = " " + word if i else word
            got = self.parts.get(part)
            if got is None:
                if len(self.parts) > CACHED_PARTS:
                    self.parts.clear()
                got = self.parts[part] = self._encoded(part)
            ids += got[0]
            ends += [at + end for end in got[1]]
            at += len(part)
        return ids, ends

    def length(self, message):
        """How many tokens a message adds; for calls and their results a little less than they do."""
        size = len(self.plain(message.content)[0]) if message.content else 0
        calls = sum(30 + 8 * len(arguments) for _, arguments in message.calls)
        return size + calls + {"user": 3, "tool": 8}.get(message.role, 1)

    def ids(self, segments):
        out = []
        for run in prompt.runs(segments):
            if run[0].control:
                out.append(self.control[run[0].text])
            else:
                out += self.plain("".join(segment.text for segment in run))[0]
        return out

    def prompt_ids(self, messages, mode=CHAT):
        """The ids of a conversation that ends with the user, up to the header of the answer."""
        return self.ids(prompt.render(messages, mode))

    def reply_ids(self, message, mode=CHAT):
        """The ids of an answer as the model says it, with the token that ends it."""
        return self.ids(prompt.reply(message, 0, mode.thinking))

    def sample(self, conversation, length, weights):
        """ids and loss weights, `length` of each; answers and calls as (start, end, messages since); starts of the
        replies."""
        ids, loss, messages = [], [], conversation.messages
        begins, ends = {}, {}
        for run in prompt.runs(prompt.render(messages, conversation.mode, last_as_generated=True)):
            head = run[0]
            if head.part in ("reasoning", "content", "call"):
                begins.setdefault(head.index, len(ids))
            if head.control:
                ids.append(self.control[head.text])
                loss.append(_control_weight(head, weights))
            else:
                first = begins.get(head.index) == len(ids)
                toks, stops = self.plain(head.text if len(run) == 1 else "".join(segment.text for segment in run))
                ids += toks
                if head.part in ("context", "tools"):
                    loss += [weights["user"] if head.part == "context" else 0.0] * len(toks)
                else:
                    loss += _reply_weights(run, messages[head.index], stops, weights, first)
            ends[head.index] = len(ids)
        answers = [(begins[i], ends[i], 1 if messages[i].calls else messages[i].since) for i in begins
                   if (messages[i].answers or messages[i].calls) and ends[i] <= length]
        starts = [start for i in begins for start in range(begins[i], ends[i], STRIDE) if start < length]
        missing = length - len(ids)
        return ids[:length] + [PAD_ID] * missing, loss[:length] + [0.0] * missing, answers, starts


def _control_weight(segment, weights):
    if segment.part == "header":
        return weights["control"] if segment.text == prompt.ASSISTANT else 0.0
    if segment.part == "context":
        return weights["control"] if segment.text in (prompt.USER, prompt.SYSTEM) else 0.0
    return weights["answer"] if segment.text == prompt.THINK_END else weights["reply"]


def _marks(segment, message):
    """(lo, hi, is value) of the characters of a segment that the model has to copy."""
    text = segment.text
    if segment.part == "call":
        if text.startswith(" invoke"):
            return [(0, len(text), False)]
        for _, arguments in message.calls:
            for key, value in arguments.items():
                if text.endswith(f">{value}</"):
                    return [(len(text) - 2 - len(value), len(text) - 2, key == "value")]
        return []
    if not message.value:
        return []
    lo = text.lower().rfind(message.value.lower())
    return [(lo, lo + len(message.value), True)] if lo >= 0 else []


def _reply_weights(run, message, ends, weights, first):
    """One weight a token: the values count most, then the token that decides how a reply begins."""
    answers = message.answers or bool(message.calls)
    spans, at = [], 0
    for segment in run:
        spans += [(at + lo, at + hi, is_value) for lo, hi, is_value in _marks(segment, message)]
        at += len(segment.text)
    plain = weights["reply"] if run[0].part == "call" or not answers else weights["answer"]
    value = weights["value"] if answers else weights["value"] / 2
    out, begin = [], 0
    for end in ends:
        weight = plain
        for lo, hi, is_value in spans:
            if begin < hi and end > lo:
                weight = value if is_value else weights["answer"]
        out.append(weight)
        begin = end
    if first and answers:
        out[0] = max(out[0], weights["first"])
    return out
