// What the Node scripts share; the same as python/checks.py, result line included.

export const URL_BASE = process.env.LOCKET_URL;
export const MODEL = process.env.LOCKET_MODEL;
export const KEY = process.env.LOCKET_KEY;

export const CITIES = ['Paris', 'Rome', 'Berlin'];
export const WEATHER_PARAMETERS = {
  type: 'object',
  properties: { city: { type: 'string', enum: CITIES }, tomorrow: { type: 'boolean' } },
  required: ['city', 'tomorrow'],
  additionalProperties: false,
};
export const QUESTION = 'What is the weather in Paris?';
export const WEATHER_RESULT = 'Sunny, 21 degrees.';
export const GREETING = 'Hello!';

const MAX_WHY = 600;
const passed = [];
const failed = [];
const notes = [];

// Runs a check; one that fails does not stop the others.
export async function check(name, run) {
  try {
    await run();
    passed.push(name);
  } catch (error) {
    console.error(error);
    const why = `${error?.name}: ${error?.message}`.replaceAll('\n', ' ');
    failed.push({ name, why: why.slice(0, MAX_WHY) });
  }
}

export function note(text) {
  notes.push(text);
}

// Last line of a script.
export function finish() {
  console.log('RESULT ' + JSON.stringify({ passed, failed, notes }));
  process.exit(failed.length ? 1 : 0);
}

export function expect(condition, message, ...found) {
  if (condition) return;
  const shown = found.length ? `; found ${JSON.stringify(found[0])}` : '';
  throw new Error(message + shown);
}

export function expectEqual(found, wanted, what) {
  const same = JSON.stringify(found) === JSON.stringify(wanted);
  expect(same, `${what} should be ${JSON.stringify(wanted)}`, found);
}

export function expectWeather(args) {
  expect(CITIES.includes(args?.city), `city should be one of ${CITIES}`, args);
  expect(typeof args.tomorrow === 'boolean', 'tomorrow should be a boolean', args);
}

// At least this share of a prompt of a second turn was remembered.
export function expectHit(hit, prompt, least = 0.9) {
  expect(prompt > 1000, 'the prompt should be long enough to tell', prompt);
  expect(hit > least * prompt, `more than ${least} of ${prompt} prompt tokens should be hits`, hit);
}

// What the check should fail with.
export async function expectThrow(run, message) {
  try {
    await run();
  } catch (error) {
    return error;
  }
  throw new Error(message);
}

// A system prompt of some thousand tokens that no other script sends.
export function longPrompt(name) {
  const lines = [`You are a friendly helper of the ${name} test.`];
  for (let number = 0; number < 90; ++number) {
    lines.push(`Note ${number}: my friend number ${number} painted the old house near the river ` +
      `yesterday, and the garage code is ${(number * 37) % 1000}.`);
  }
  return lines.join('\n');
}
