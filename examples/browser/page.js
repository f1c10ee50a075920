import { openTea } from './tea/index.js';

const $ = (id) => document.getElementById(id);
const state = (text) => ($('state').textContent = text);

function say(text, kind = '') {
  const line = document.createElement('li');
  line.className = kind;
  line.textContent = text;
  $('talk').append(line);
  line.scrollIntoView({ block: 'nearest' });
  return line;
}

let tea, workflow;

const idle = () => state(tea.writable ? 'ready' : 'another tab has the notes');

async function showNotes() {
  const { entries } = await tea.action('ltm.list', { prefix: 'note/', limit: 1000 });
  $('count').textContent = entries.length;
  $('notes').replaceChildren(...entries.map(({ value }) => Object.assign(document.createElement('li'), { textContent: value })));
}

// follow shows a run until it ends or asks.
async function follow(run) {
  $('form').inert = true;
  try {
    for await (const event of run) if (event.node) state(event.node);
    const { status, state: values, pending, runId } = await run;
    $('graph').srcdoc = `<style>svg { display: block; margin: auto; max-width: 100%; height: auto }</style>${await tea.show(runId)}`;
    if (status === 'waiting') ask(runId, pending[0]);
    else {
      say(values.answer);
      await tea.remove(runId);
    }
    await showNotes();
  } catch (e) {
    say(e.message, 'error');
  }
  $('form').inert = false;
  idle();
}

function ask(runId, { id, question, choices }) {
  const line = say(`${question} `);
  for (const choice of choices) {
    const button = document.createElement('button');
    button.textContent = choice;
    button.onclick = () => {
      for (const b of line.querySelectorAll('button')) b.disabled = true;
      follow(tea.resume(runId, { durability: 'sync', answers: { [id]: choice } }));
    };
    line.append(button, ' ');
  }
}

$('form').onsubmit = (e) => {
  e.preventDefault();
  const text = $('text').value;
  say(text, 'user');
  $('text').value = '';
  follow(tea.run(workflow, { name: 'assistant.yaml', durability: 'sync', input: { text } }));
};

try {
  navigator.storage?.persist?.(); // the browser keeps the notes when it needs space
  const config = { settings: { memory: { options: { database: 'assistant-notes' } } } };
  tea = await openTea({ storage: 'assistant', config, onWritable: idle });
  workflow = await (await fetch('./assistant.yaml')).text();
  await showNotes();
  // A question of before the reload still waits.
  for (const { id, status } of tea.writable ? await tea.runs() : []) {
    if (status === 'waiting') await follow(tea.resume(id, { hold: true }));
  }
  $('form').inert = false;
  idle();
  await navigator.serviceWorker?.register('./sw.js').then(() => navigator.serviceWorker.ready);
  document.documentElement.dataset.ready = 'true';
} catch (e) {
  state('failed');
  say(e.message, 'error');
}
