// ai with @ai-sdk/anthropic: Messages. Structured output is a forced call of a tool named json.

import { createAnthropic } from '@ai-sdk/anthropic';

import { runSession } from './ai_session.mjs';
import { KEY, MODEL, URL_BASE } from './checks.mjs';

const anthropic = createAnthropic({ baseURL: URL_BASE + '/anthropic/v1', apiKey: KEY });
const calm = { providerOptions: { anthropic: { thinking: { type: 'disabled' } } } };
await runSession({ name: 'anthropic', model: anthropic(MODEL), other: anthropic('no-such-model'),
  calm, shaped: {} });
