// ai with @ai-sdk/deepseek: Chat Completions under a base without /v1. Structured output goes out
// as json_object with the schema as text, which binds a small model to no schema; it is left out.

import { createDeepSeek } from '@ai-sdk/deepseek';

import { runSession } from './ai_session.mjs';
import { KEY, MODEL, URL_BASE } from './checks.mjs';

const deepseek = createDeepSeek({ baseURL: URL_BASE, apiKey: KEY });
const calm = { providerOptions: { deepseek: { thinking: { type: 'disabled' } } } };
await runSession({ name: 'deepseek', model: deepseek(MODEL), other: deepseek('no-such-model'), calm,
  shaped: null });
