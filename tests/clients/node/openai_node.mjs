// openai (Node): Chat Completions, Responses, their helpers, models.

import OpenAI from 'openai';
import { zodResponseFormat, zodTextFormat } from 'openai/helpers/zod';
import { z } from 'zod';

import { CITIES, GREETING, KEY, MODEL, QUESTION, URL_BASE, WEATHER_PARAMETERS, WEATHER_RESULT,
  check, expect, expectEqual, expectHit, expectThrow, expectWeather, finish,
  longPrompt } from './checks.mjs';

const client = new OpenAI({ baseURL: URL_BASE + '/v1', apiKey: KEY, maxRetries: 0 });
const Weather = z.object({ city: z.enum(CITIES), tomorrow: z.boolean() });
const description = 'Tells the weather.';
const tools = [
  { type: 'function',
    function: { name: 'get_weather', description, parameters: WEATHER_PARAMETERS } },
];
const responseTools = [
  { type: 'function', name: 'get_weather', description, parameters: WEATHER_PARAMETERS,
    strict: true },
];
const named = { type: 'function', function: { name: 'get_weather' } };
const chat = { model: MODEL, max_tokens: 64, temperature: 0, thinking: { type: 'disabled' } };
const responses = { model: MODEL, max_output_tokens: 64, temperature: 0,
  reasoning: { effort: 'none' } };
const hello = [{ role: 'user', content: GREETING }];

await check('models', async () => {
  const listed = [];
  for await (const model of client.models.list()) listed.push(model.id);
  expect(listed.includes(MODEL), `${MODEL} should be listed`, listed);
  expectEqual((await client.models.retrieve(MODEL)).id, MODEL, 'the id of the model');
});

await check('plain answer', async () => {
  const answer = await client.chat.completions.create({ ...chat, messages: hello });
  expect(answer._request_id, 'x-request-id should be there');
  expect(answer.choices[0].message.content, 'there should be content', answer.choices[0]);
  expectEqual(answer.choices[0].finish_reason, 'stop', 'finish_reason');
});

await check('stream', async () => {
  const stream = await client.chat.completions.create({ ...chat, messages: hello, stream: true,
    stream_options: { include_usage: true } });
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  const roles = chunks.map((chunk) => chunk.choices[0]?.delta.role).filter(Boolean);
  expectEqual(roles, ['assistant'], 'roles');
  const finishes = chunks.map((chunk) => chunk.choices[0]?.finish_reason).filter(Boolean);
  expectEqual(finishes, ['stop'], 'finish reasons');
  expectEqual(chunks.filter((chunk) => chunk.usage).length, 1, 'number of usages');
});

await check('stream() helper', async () => {
  const runner = client.chat.completions.stream({ ...chat, messages: hello });
  let text = '';
  runner.on('content', (delta) => (text += delta));
  const final = await runner.finalChatCompletion();
  expectEqual(final.choices[0].message.content, text, 'the content');
  expect(text, 'there should be text');
});

await check('thinking', async () => {
  const answer = await client.chat.completions.create({ model: MODEL, messages: hello,
    max_tokens: 8 });
  expect(answer.choices[0].message.reasoning_content, 'there should be reasoning', answer.choices);
});

await check('tool call and its result', async () => {
  const messages = [{ role: 'user', content: QUESTION }];
  const answer = await client.chat.completions.create({ model: MODEL, messages, tools,
    tool_choice: named, max_tokens: 512 });
  expectEqual(answer.choices[0].finish_reason, 'tool_calls', 'finish_reason');
  const call = answer.choices[0].message.tool_calls[0];
  expectWeather(JSON.parse(call.function.arguments));
  expectEqual(JSON.stringify(JSON.parse(call.function.arguments)), call.function.arguments,
    'arguments, written by JSON.stringify');
  messages.push(answer.choices[0].message);
  messages.push({ role: 'tool', tool_call_id: call.id, content: WEATHER_RESULT });
  const after = await client.chat.completions.create({ ...chat, messages, tools,
    tool_choice: 'none' });
  expect(after.choices[0].message.content, 'there should be an answer', after.choices[0]);
});

await check('runTools, which leaves reasoning_content out', async () => {
  const called = [];
  const weather = { type: 'function', function: { name: 'get_weather', description,
    parameters: WEATHER_PARAMETERS, parse: JSON.parse,
    function: (args) => (called.push(args), WEATHER_RESULT) } };
  const runner = client.chat.completions.runTools({ model: MODEL, tool_choice: named,
    max_tokens: 512, messages: [{ role: 'user', content: QUESTION }], tools: [weather],
    stream: true });
  await runner.done();
  expectEqual(called.length, 1, 'number of calls');
  expectWeather(called[0]);
});

await check('required calls through the helper', async () => {
  const runner = client.chat.completions.stream({ model: MODEL, tools, tool_choice: 'required',
    max_tokens: 512, messages: [{ role: 'user', content: QUESTION }] });
  const final = await runner.finalChatCompletion();
  const calls = final.choices[0].message.tool_calls;
  expect(calls?.length, 'there should be calls', final.choices[0]);
  calls.forEach((call) => expectWeather(JSON.parse(call.function.arguments)));
});

await check('structured output', async () => {
  const answer = await client.chat.completions.parse({ ...chat,
    messages: [{ role: 'user', content: QUESTION }],
    response_format: zodResponseFormat(Weather, 'weather') });
  expectWeather(answer.choices[0].message.parsed);
});

await check('second turn hits', async () => {
  const messages = [{ role: 'system', content: longPrompt('openai node chat') }, ...hello];
  const first = await client.chat.completions.create({ ...chat, messages });
  messages.push(first.choices[0].message, { role: 'user', content: 'I feel tired.' });
  const { usage } = await client.chat.completions.create({ ...chat, messages });
  expectHit(usage.prompt_tokens_details.cached_tokens, usage.prompt_tokens);
});

await check('errors', async () => {
  const unknown = await expectThrow(
    () => client.chat.completions.create({ model: 'no-such-model', messages: hello }),
    'an unknown model should be refused');
  expect([400, 404].includes(unknown.status), 'the status should be 400 or 404', unknown.status);
  expect(unknown.error?.message, 'the error should have a message', unknown.error);
  const empty = await expectThrow(() => client.chat.completions.create({ ...chat, messages: [] }),
    'no messages should be refused');
  expectEqual(empty.status, 400, 'status');
  const key = await expectThrow(
    () => new OpenAI({ baseURL: URL_BASE + '/v1', apiKey: 'wrong', maxRetries: 0 }).models.list(),
    'a wrong key should be refused');
  expectEqual(key.status, 401, 'status');
});

await check('responses: plain answer and stream', async () => {
  const plain = await client.responses.create({ ...responses, input: GREETING });
  expect(plain.output_text, 'there should be text', plain.output);
  const types = [];
  let text = '';
  for await (const event of await client.responses.create({ ...responses, input: GREETING,
    stream: true })) {
    types.push(event.type);
    if (event.type === 'response.output_text.delta') text += event.delta;
  }
  expectEqual([types[0], types.at(-1)], ['response.created', 'response.completed'],
    'first and last event');
  expectEqual(text, plain.output_text, 'the text of the stream');
});

await check('responses: stream() helper with reasoning', async () => {
  const stream = client.responses.stream({ model: MODEL, input: GREETING, max_output_tokens: 8 });
  const final = await stream.finalResponse();
  expectEqual(final.output[0].type, 'reasoning', 'the first item');
  expect(final.output[0].content?.[0]?.text, 'there should be reasoning', final.output[0]);
});

await check('responses: tool call and its result', async () => {
  const input = [{ role: 'user', content: QUESTION }];
  const stream = client.responses.stream({ model: MODEL, input, tools: responseTools,
    tool_choice: { type: 'function', name: 'get_weather' }, max_output_tokens: 512 });
  const final = await stream.finalResponse();
  const call = final.output.find((item) => item.type === 'function_call');
  expectWeather(JSON.parse(call.arguments));
  input.push(...final.output);
  input.push({ type: 'function_call_output', call_id: call.call_id, output: WEATHER_RESULT });
  const after = await client.responses.create({ ...responses, input });
  expect(after.output_text, 'there should be an answer', after.output);
});

await check('responses: structured output', async () => {
  const answer = await client.responses.parse({ ...responses, input: QUESTION,
    max_output_tokens: 512, text: { format: zodTextFormat(Weather, 'weather') } });
  expectWeather(answer.output_parsed);
});

await check('responses: second turn hits', async () => {
  const common = { ...responses, instructions: longPrompt('openai node responses') };
  const first = await client.responses.create({ ...common, input: hello });
  const input = [...hello, ...first.output, { role: 'user', content: 'I feel tired.' }];
  const { usage } = await client.responses.create({ ...common, input });
  expectHit(usage.input_tokens_details.cached_tokens, usage.input_tokens);
});

finish();
