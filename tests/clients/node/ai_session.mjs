// One session of the AI SDK; a script names the provider's model and its options.

import { Output, generateText, isStepCount, jsonSchema, streamText, tool } from 'ai';

import { GREETING, QUESTION, WEATHER_PARAMETERS, WEATHER_RESULT, check, expect, expectEqual,
  expectHit, expectWeather, finish, longPrompt } from './checks.mjs';

// `model`: the model; `other`: a model that does not exist; `calm`: options of a call without
// thinking; `forced`: options of one that forces a tool; `shaped`: options of one that asks for an
// object, null where the provider has no way that binds the model; `showsReasoning`: the provider
// passes the text of reasoning on.
export async function runSession({ name, model, other, calm, forced = {}, shaped = calm,
  showsReasoning = true }) {
  const common = { model, maxRetries: 0, maxOutputTokens: 64, temperature: 0 };
  const called = [];
  const weather = tool({ description: 'Tells the weather.',
    inputSchema: jsonSchema(WEATHER_PARAMETERS),
    execute: async (args) => (called.push(args), WEATHER_RESULT) });

  await check('plain answer', async () => {
    const answer = await generateText({ ...common, ...calm, prompt: GREETING });
    expect(answer.text, 'there should be text', answer.content);
    expectEqual(answer.finishReason, 'stop', 'finishReason');
    expect(answer.usage.inputTokens > 0 && answer.usage.outputTokens > 0, 'usage', answer.usage);
  });

  await check('stream', async () => {
    const result = streamText({ ...common, ...calm, prompt: GREETING });
    const types = new Set();
    let text = '';
    for await (const part of result.fullStream) {
      types.add(part.type);
      if (part.type === 'error') throw part.error;
      if (part.type === 'text-delta') text += part.text;
    }
    expect(text && types.has('finish'), 'there should be text and an end', [...types]);
    expectEqual(await result.finishReason, 'stop', 'finishReason');
  });

  await check('thinking', async () => {
    const result = streamText({ ...common, prompt: GREETING });
    let reasoning = '';
    let starts = 0;
    for await (const part of result.fullStream) {
      if (part.type === 'error') throw part.error;
      if (part.type === 'reasoning-start') starts += 1;
      if (part.type === 'reasoning-delta') reasoning += part.text;
    }
    expect(showsReasoning ? reasoning : starts, 'there should be reasoning', await result.content);
  });

  await check('tool call, its result, second step', async () => {
    called.length = 0;
    const result = streamText({ ...common, ...forced, maxOutputTokens: 512, prompt: QUESTION,
      tools: { weather }, stopWhen: isStepCount(2),
      prepareStep: ({ stepNumber }) => (stepNumber === 0
        ? { toolChoice: { type: 'tool', toolName: 'weather' } } : { toolChoice: 'auto' }) });
    for await (const part of result.fullStream) {
      if (part.type === 'error') throw part.error;
    }
    const steps = await result.steps;
    expectEqual(called.length, 1, 'number of calls');
    expectWeather(called[0]);
    expectEqual(steps.length, 2, 'number of steps');
    expectEqual(steps[0].finishReason, 'tool-calls', 'finishReason');
  });

  await check('required calls, plain', async () => {
    called.length = 0;
    await generateText({ ...common, ...forced, maxOutputTokens: 512, prompt: QUESTION,
      tools: { weather }, toolChoice: 'required' });
    expect(called.length >= 1, 'there should be calls', called);
    called.forEach(expectWeather);
  });

  if (shaped) {
    await check('structured output', async () => {
      const answer = await generateText({ ...common, ...shaped, maxOutputTokens: 512,
        prompt: QUESTION, output: Output.object({ schema: jsonSchema(WEATHER_PARAMETERS) }) });
      expectWeather(answer.output);
    });
  }

  await check('second turn hits', async () => {
    const instructions = longPrompt(`ai sdk ${name}`);
    const messages = [{ role: 'user', content: GREETING }];
    const first = streamText({ ...common, ...calm, instructions, messages });
    messages.push(...(await first.response).messages, { role: 'user', content: 'I feel tired.' });
    const { usage } = await generateText({ ...common, ...calm, instructions, messages });
    const before = await first.usage;
    expect(usage.inputTokens >= before.inputTokens + before.outputTokens,
      'the first answer should be in the second prompt', [before, usage]);
    const hit = usage.inputTokenDetails?.cacheReadTokens ?? usage.cachedInputTokens;
    expectHit(hit, usage.inputTokens);
  });

  await check('errors', async () => {
    let found;
    try {
      await generateText({ ...common, model: other, prompt: GREETING });
    } catch (error) {
      found = error;
    }
    expect([400, 404].includes(found?.statusCode), 'the status should be 400 or 404', found);
    expect(found.message.includes('no-such-model'), 'the message should name it', found.message);
  });

  finish();
}
