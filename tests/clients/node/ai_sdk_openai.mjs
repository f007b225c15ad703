// ai with @ai-sdk/openai: Responses. It sends earlier answers back as references to stored items.

import { createOpenAI } from '@ai-sdk/openai';

import { runSession } from './ai_session.mjs';
import { KEY, MODEL, URL_BASE } from './checks.mjs';

const openai = createOpenAI({ baseURL: URL_BASE + '/v1', apiKey: KEY });
const calm = { providerOptions: { openai: { reasoningEffort: 'none', forceReasoning: true } } };
await runSession({ name: 'openai', model: openai.responses(MODEL),
  other: openai.responses('no-such-model'), calm });
