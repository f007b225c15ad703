// ai with @ai-sdk/openai: Responses. It sends earlier answers back as references to stored items.
// Of reasoning it passes on summaries only, which the server does not make.

import { createOpenAI } from '@ai-sdk/openai';

import { runSession } from './ai_session.mjs';
import { KEY, MODEL, URL_BASE } from './checks.mjs';

const openai = createOpenAI({ baseURL: URL_BASE + '/v1', apiKey: KEY });
const calm = { providerOptions: { openai: { reasoningEffort: 'none', forceReasoning: true } } };
await runSession({ name: 'openai', model: openai.responses(MODEL),
  other: openai.responses('no-such-model'), calm,
  showsReasoning: false });
