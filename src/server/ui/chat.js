// The chat: one conversation, kept on this page only. Text of the model is text, never markup.
const kNearEnd = 40;  // pixels

// The data lines of an event stream, one by one. Comments are passed over.
async function* dataLines(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    const lines = (rest + (value ?? "")).split("\n");
    rest = done ? "" : lines.pop();
    for (const line of lines) {
      if (line.startsWith("data:")) yield line.slice(5).trim();
    }
    if (done) return;
  }
}

// One answer as it grows.
class AnswerView {
  constructor(scroller) {
    this.scroller = scroller;
    this.root = make("article", "message assistant busy");
    this.details = make("details");
    this.summary = make("summary", "", "Thinking");
    this.reasoning = document.createTextNode("");
    this.content = document.createTextNode("");
    const thought = make("div", "text reasoning");
    thought.append(this.reasoning);
    this.details.append(this.summary, thought);
    this.details.hidden = true;
    this.details.open = true;
    this.summary.addEventListener("click", () => { this.isFoldChosen = true; });
    const text = make("div", "text content");
    text.append(this.content);
    this.root.append(this.details, text);
    scroller.append(this.root);
  }

  keepEndInView(change) {
    const place = this.scroller;
    const isNear = place.scrollHeight - place.scrollTop - place.clientHeight < kNearEnd;
    change();
    if (isNear) place.scrollTop = place.scrollHeight;
  }

  addReasoning(text) {
    this.keepEndInView(() => {
      this.details.hidden = false;
      this.reasoning.appendData(text);
    });
  }

  addContent(text) {
    this.keepEndInView(() => {
      if (this.content.length === 0) this.foldReasoning();
      this.content.appendData(text);
    });
  }

  foldReasoning() {
    setText(this.summary, "Thoughts");
    if (!this.isFoldChosen) this.details.open = false;
  }

  addNote(className, text) {
    this.keepEndInView(() => this.root.append(make("p", className, text)));
  }

  end() {
    // Thoughts that led to nothing are all there is to see.
    if (this.content.length > 0) this.foldReasoning();
    else setText(this.summary, "Thoughts");
    this.root.classList.remove("busy");
  }
}

class Chat {
  // `request(path, options)`: fetch() with the key; `modelName()`: what to ask for.
  constructor(request, modelName) {
    this.request = request;
    this.modelName = modelName;
    this.turns = [];
    this.abort = null;
    this.place = byId("messages");
    this.prompt = byId("prompt");
    byId("chat-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.send();
    });
    byId("stop").addEventListener("click", () => this.stop());
    byId("new-chat").addEventListener("click", () => this.clear());
    this.prompt.addEventListener("input", () => this.fitPrompt());
    this.prompt.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.send();
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !document.querySelector("dialog[open]")) this.stop();
    });
  }

  fitPrompt() {
    this.prompt.style.height = "auto";
    this.prompt.style.height = `${this.prompt.scrollHeight + 2}px`;
  }

  setPrompt(text) {
    this.prompt.value = text;
    this.fitPrompt();
  }

  stop() {
    this.abort?.abort();
  }

  clear() {
    this.stop();
    this.turns = [];
    this.place.replaceChildren(byId("chat-empty") ?? this.empty);
    setText(byId("chat-status"), "");
    this.prompt.focus();
  }

  setBusy(isBusy) {
    byId("stop").hidden = !isBusy;
    byId("send").hidden = isBusy;
    this.place.setAttribute("aria-busy", isBusy);
  }

  async send() {
    const text = this.prompt.value.trim();
    if (this.abort || text === "") return;
    const abort = new AbortController();
    this.abort = abort;
    this.setPrompt("");
    this.setBusy(true);
    this.empty = byId("chat-empty") ?? this.empty;
    this.empty.remove();
    const question = make("article", "message user");
    question.append(make("div", "text", text));
    this.place.append(question);
    const view = new AnswerView(this.place);
    this.place.scrollTop = this.place.scrollHeight;
    const turns = [...this.turns, { role: "user", content: text }];
    const answer = { content: "", tokens: 0, usage: null, finish: "", sent: performance.now(),
                     first: 0, last: 0, trouble: "", isStopped: false };
    try {
      await this.receive(turns, answer, view, abort.signal);
    } catch (error) {
      answer.isStopped = abort.signal.aborted;
      if (!answer.isStopped) answer.trouble = error.message;
    }
    // What was begun belongs to the conversation, what never came does not.
    const isKept = answer.content !== "" || (answer.trouble === "" && answer.finish !== "");
    if (isKept && this.abort === abort && this.place.contains(view.root)) {
      this.turns = [...turns, { role: "assistant", content: answer.content }];
    }
    this.finish(answer, view);
    if (answer.trouble !== "" && !isKept && this.prompt.value === "") this.setPrompt(text);
    this.abort = null;
    this.setBusy(false);
  }

  body(turns) {
    const body = { model: this.modelName(), messages: turns, stream: true,
                   stream_options: { include_usage: true } };
    const thinking = byId("thinking").value;
    if (thinking !== "") body.thinking = { type: thinking };
    return JSON.stringify(body);
  }

  async receive(turns, answer, view, signal) {
    const response = await this.request("v1/chat/completions", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: this.body(turns),
      signal,
    });
    if (!response.ok) throw new Error(await errorText(response));
    for await (const line of dataLines(response.body)) {
      if (line === "[DONE]") return;
      this.take(JSON.parse(line), answer, view);
    }
    if (answer.finish === "") throw new Error("The answer broke off.");
  }

  take(chunk, answer, view) {
    if (chunk.error) throw new Error(chunk.error.message);
    if (chunk.usage) answer.usage = chunk.usage;
    const choice = chunk.choices?.[0];
    if (!choice) return;
    if (choice.finish_reason) answer.finish = choice.finish_reason;
    const { reasoning_content: reasoning, content } = choice.delta ?? {};
    if (!reasoning && !content) return;
    const now = performance.now();
    if (answer.first === 0) answer.first = now;
    answer.last = now;
    answer.tokens += 1;
    if (reasoning) view.addReasoning(reasoning);
    if (content) {
      answer.content += content;
      view.addContent(content);
    }
    const seconds = (now - answer.first) / 1000;
    if (seconds > 0.5) {
      setText(byId("chat-status"), `about ${formatRate((answer.tokens - 1) / seconds)} tokens/s`);
    }
  }

  finish(answer, view) {
    view.end();
    if (answer.trouble !== "") view.addNote("trouble", answer.trouble);
    const facts = answerFacts(answer);
    if (facts !== "") view.addNote("facts", facts);
    setText(byId("chat-status"), answer.isStopped ? "Stopped." :
            answer.trouble !== "" ? "No answer." : "Answer complete.");
  }
}

function answerFacts(answer) {
  const facts = [];
  const { usage } = answer;
  if (answer.isStopped) facts.push("stopped");
  if (answer.finish === "length") facts.push("cut off at the limit");
  if (answer.tokens === 0) return facts.join(" · ");
  const count = usage?.completion_tokens ?? answer.tokens;
  facts.push(`${usage ? "" : "about "}${plural(count, "token", "tokens")}`);
  const detail = usage?.locket?.usage;
  const seconds = detail ? detail.decode_ms / 1000 : (answer.last - answer.first) / 1000;
  if (count > 1 && seconds > 0) facts.push(`${formatRate((count - 1) / seconds)} tokens/s`);
  if (usage) {
    const cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
    facts.push(`${formatCount(cached)} of ${formatCount(usage.prompt_tokens)} remembered`);
  }
  const wait = answer.first - answer.sent;
  facts.push(`first after ${wait < 1000 ? `${Math.round(wait)} ms` : formatAge(wait / 1000)}`);
  return facts.join(" · ");
}

async function errorText(response) {
  try {
    const { error } = await response.json();
    if (error?.message) return error.message;
  } catch {
    // No JSON: the status must do.
  }
  return `The server answered ${response.status} ${response.statusText}`.trim();
}
