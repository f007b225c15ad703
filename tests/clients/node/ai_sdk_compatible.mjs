// ai with @ai-sdk/openai-compatible: Chat Completions.

import { createOpenAICompatible } from '@ai-sdk/openai-compatible';

import { runSession } from './ai_session.mjs';
import { KEY, MODEL, URL_BASE } from './checks.mjs';

const locket = createOpenAICompatible({ name: 'locket', baseURL: URL_BASE + '/v1', apiKey: KEY,
  includeUsage: true, supportsStructuredOutputs: true });
const calm = { providerOptions: { locket: { thinking: { type: 'disabled' } } } };
await runSession({ name: 'compatible', model: locket(MODEL), other: locket('no-such-model'),
  calm });
