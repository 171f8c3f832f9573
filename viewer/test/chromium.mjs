// Chromium without a window, driven over a pipe (the DevTools protocol): no port, and no library.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export async function startChromium() {
  const profile = mkdtempSync(join(tmpdir(), 'viewer-'));
  const options = [
    '--headless=new',
    '--remote-debugging-pipe',
    `--user-data-dir=${profile}`,
    '--no-sandbox',
    '--disable-gpu',
  ];
  // Nothing that Chromium does by itself may look like a request of the page, or take time.
  options.push(
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
    '--disable-extensions',
  );
  options.push('--disable-dev-shm-usage', '--mute-audio', '--hide-scrollbars', '--force-device-scale-factor=1');
  const program = process.env.CHROMIUM ?? 'chromium';
  const child = spawn(program, [...options, 'about:blank'], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
  const failed = new Promise((_, reject) => child.once('error', reject));
  const [, , , input, output] = child.stdio;
  const waiting = new Map();
  const listeners = [];
  let next = 1;
  let text = '';
  output.setEncoding('utf8');
  output.on('data', (piece) => {
    text += piece;
    for (let end; (end = text.indexOf('\0')) >= 0; text = text.slice(end + 1)) {
      const message = JSON.parse(text.slice(0, end));
      const call = waiting.get(message.id);
      if (!call) for (const listener of listeners) listener(message);
      else if (message.error) call.reject(new Error(`${call.method}: ${message.error.message}`));
      else call.resolve(message.result);
      waiting.delete(message.id);
    }
  });
  const send = (method, params = {}, sessionId) =>
    new Promise((resolve, reject) => {
      const id = next++;
      waiting.set(id, { resolve, reject, method });
      input.write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    });
  const close = async () => {
    const closed = new Promise((resolve) => child.once('close', resolve));
    send('Browser.close').catch(() => child.kill());
    await closed;
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  };
  await Promise.race([send('Browser.getVersion'), failed]);
  return { newPage: (url) => newPage(send, listeners, url), send, close, pid: child.pid };
}

async function newPage(send, listeners, url) {
  const { targetId } = await send('Target.createTarget', { url: 'about:blank' });
  const { sessionId } = await send('Target.attachToTarget', { targetId, flatten: true });
  const requests = [];
  const complaints = [];
  const frames = new Set([sessionId]);
  const own = (method, params) => send(method, params, sessionId);
  listeners.push((message) => {
    if (!frames.has(message.sessionId)) return;
    if (message.method === 'Target.attachedToTarget') {
      const inner = message.params.sessionId;
      frames.add(inner);
      // Workers are watched too, before they run.
      for (const domain of ['Network', 'Runtime']) send(`${domain}.enable`, {}, inner).catch(() => undefined);
      send('Runtime.runIfWaitingForDebugger', {}, inner).catch(() => undefined);
    }
    if (message.method === 'Network.requestWillBeSent') requests.push(message.params.request.url);
    if (message.method === 'Runtime.exceptionThrown')
      complaints.push(message.params.exceptionDetails.exception?.description ?? message.params.exceptionDetails.text);
    if (message.method === 'Log.entryAdded') complaints.push(message.params.entry.text);
    if (message.method === 'Runtime.consoleAPICalled')
      complaints.push(message.params.args.map((one) => one.value).join(' '));
  });
  for (const domain of ['Page', 'Runtime', 'Network', 'Log', 'DOM']) await own(`${domain}.enable`);
  await own('Target.setAutoAttach', { autoAttach: true, waitForDebuggerOnStart: true, flatten: true });

  const page = {
    requests,
    complaints,
    send: own,
    async goto(address) {
      const loaded = page.event('Page.loadEventFired');
      await own('Page.navigate', { url: address });
      await loaded;
    },
    event(method) {
      return new Promise((resolve) => {
        const listener = (message) => {
          if (message.sessionId !== sessionId || message.method !== method) return;
          listeners.splice(listeners.indexOf(listener), 1);
          resolve(message.params);
        };
        listeners.push(listener);
      });
    },
    async evaluate(expression) {
      const { result, exceptionDetails } = await own('Runtime.evaluate', {
        expression,
        awaitPromise: true,
        returnByValue: true,
      });
      if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
      return result.value;
    },
    /** Waits until an expression is true, and gives its value. */
    async until(expression, what = expression, limit = 15_000) {
      for (const end = Date.now() + limit; ;) {
        const value = await page.evaluate(expression);
        if (value) return value;
        if (Date.now() > end)
          throw new Error(`waited in vain for: ${what}\n${await page.evaluate('document.body.innerText')}`);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
    async pick(path) {
      const { root } = await own('DOM.getDocument');
      const { nodeId } = await own('DOM.querySelector', { nodeId: root.nodeId, selector: '#pick' });
      await own('DOM.setFileInputFiles', { nodeId, files: [path] });
    },
    async key(key, text) {
      const code =
        { ArrowDown: 40, ArrowUp: 38, ArrowLeft: 37, ArrowRight: 39, Enter: 13, Tab: 9, Escape: 27, Home: 36, End: 35 }[
          key
        ] ?? key.toUpperCase().charCodeAt(0);
      const event = {
        key,
        windowsVirtualKeyCode: code,
        ...(key.length === 1 ? { text: text ?? key } : key === 'Enter' ? { text: '\r' } : {}),
      };
      await own('Input.dispatchKeyEvent', { type: 'keyDown', ...event });
      await own('Input.dispatchKeyEvent', { type: 'keyUp', ...event });
    },
    async type(words) {
      await own('Input.insertText', { text: words });
    },
    async screenshot() {
      const { data } = await own('Page.captureScreenshot', { format: 'png' });
      return Buffer.from(data, 'base64');
    },
    async size(width, height, scale = 1) {
      await own('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: scale, mobile: false });
    },
    async scheme(name) {
      await own('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: name }] });
    },
    async close() {
      await send('Target.closeTarget', { targetId });
    },
  };
  if (url) await page.goto(url);
  return page;
}
