// @anthropic-ai/sdk (Node): Messages, its helpers, token counts and models.

import Anthropic from '@anthropic-ai/sdk';

import { GREETING, KEY, MODEL, QUESTION, URL_BASE, WEATHER_PARAMETERS, WEATHER_RESULT, check,
  expect, expectEqual, expectHit, expectThrow, expectWeather, finish,
  longPrompt } from './checks.mjs';

const client = new Anthropic({ baseURL: URL_BASE + '/anthropic', apiKey: KEY, maxRetries: 0 });
const common = { model: MODEL, max_tokens: 64, thinking: { type: 'disabled' } };
const hello = [{ role: 'user', content: GREETING }];
const question = [{ role: 'user', content: QUESTION }];
const tools = [
  { name: 'get_weather', description: 'Tells the weather.', input_schema: WEATHER_PARAMETERS },
];

await check('models', async () => {
  const listed = [];
  for await (const model of client.models.list()) listed.push(model.id);
  expect(listed.includes(MODEL), `${MODEL} should be listed`, listed);
  expectEqual((await client.models.retrieve(MODEL)).id, MODEL, 'the id of the model');
});

await check('plain answer', async () => {
  const answer = await client.messages.create({ ...common, messages: hello });
  expectEqual([answer.type, answer.role], ['message', 'assistant'], 'type and role');
  expect(answer.content[0].text, 'there should be text', answer.content);
  expect(answer.usage.output_tokens > 0, 'there should be usage', answer.usage);
});

await check('stream', async () => {
  const types = [];
  for await (const event of await client.messages.create({ ...common, messages: hello,
    stream: true })) {
    if (event.type !== 'ping') types.push(event.type);
  }
  expectEqual(types.slice(0, 2), ['message_start', 'content_block_start'], 'first events');
  expectEqual(types.slice(-3), ['content_block_stop', 'message_delta', 'message_stop'],
    'last events');
});

await check('stream() helper', async () => {
  const stream = client.messages.stream({ ...common, messages: hello });
  let text = '';
  stream.on('text', (delta) => (text += delta));
  const final = await stream.finalMessage();
  expectEqual(final.content[0].text, text, 'the text');
  expect(text, 'there should be text');
});

await check('thinking', async () => {
  const stream = client.messages.stream({ model: MODEL, max_tokens: 8, messages: hello,
    thinking: { type: 'adaptive' } });
  const final = await stream.finalMessage();
  expectEqual(final.content[0].type, 'thinking', 'the first block');
});

await check('tool call and its result', async () => {
  const answer = await client.messages.create({ model: MODEL, max_tokens: 512, messages: question,
    tools, tool_choice: { type: 'tool', name: 'get_weather' } });
  expectEqual(answer.stop_reason, 'tool_use', 'stop_reason');
  const call = answer.content.find((block) => block.type === 'tool_use');
  expectWeather(call.input);
  const result = { type: 'tool_result', tool_use_id: call.id, content: WEATHER_RESULT };
  const after = await client.messages.create({ ...common, tools, messages: [...question,
    { role: 'assistant', content: answer.content }, { role: 'user', content: [result] }] });
  expect(after.content.length, 'there should be an answer', after);
});

await check('tool calls streamed through the helper', async () => {
  const stream = client.messages.stream({ model: MODEL, max_tokens: 512, messages: question, tools,
    tool_choice: { type: 'any' } });
  let parts = 0;
  stream.on('inputJson', () => ++parts);
  const final = await stream.finalMessage();
  const calls = final.content.filter((block) => block.type === 'tool_use');
  expect(calls.length && parts, 'calls should be streamed', final.content);
  calls.forEach((call) => expectWeather(call.input));
});

await check('structured output', async () => {
  const answer = await client.messages.create({ ...common, max_tokens: 512, messages: question,
    output_config: { format: { type: 'json_schema', schema: WEATHER_PARAMETERS } } });
  expectWeather(JSON.parse(answer.content[0].text));
});

await check('count_tokens', async () => {
  const request = { model: MODEL, messages: hello, thinking: { type: 'disabled' } };
  const counted = await client.messages.countTokens(request);
  const { usage } = await client.messages.create({ ...request, max_tokens: 4 });
  expectEqual(counted.input_tokens, usage.input_tokens + usage.cache_read_input_tokens,
    'input_tokens');
});

await check('second turn hits', async () => {
  const system = [{ type: 'text', text: longPrompt('anthropic node'),
    cache_control: { type: 'ephemeral' } }];
  const first = await client.messages.create({ ...common, system, messages: hello });
  const { usage } = await client.messages.create({ ...common, system, messages: [...hello,
    { role: 'assistant', content: first.content }, { role: 'user', content: 'I feel tired.' }] });
  expectHit(usage.cache_read_input_tokens, usage.input_tokens + usage.cache_read_input_tokens);
});

await check('errors', async () => {
  const unknown = await expectThrow(
    () => client.messages.create({ ...common, model: 'no-such-model', messages: hello }),
    'an unknown model should be refused');
  expect([400, 404].includes(unknown.status), 'the status should be 400 or 404', unknown.status);
  expectEqual(unknown.error?.type, 'error', 'type');
  expect(unknown.error.error?.message, 'the error should have a message', unknown.error);
});

finish();
