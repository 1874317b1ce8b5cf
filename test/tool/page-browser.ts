import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import chromium from '@sparticuz/chromium';
import { type Browser, chromium as launcher, type Page } from 'playwright-core';
import type { BridgeProcess } from './bridge-process.js';

/** A real browser, which the packages bring. */
export class PageBrowser {
  static async open(): Promise<PageBrowser> {
    const executablePath = await chromium.executablePath();
    return new PageBrowser(await launcher.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] }));
  }

  /** What pages complained of: errors of scripts, and what their policy forbade. */
  readonly complaints: string[] = [];

  private constructor(private readonly browser: Browser) {}

  /** A page of a browser that knows nothing yet. @param hasScript whether scripts run */
  async page(hasScript = true): Promise<Page> {
    const context = await this.browser.newContext({ javaScriptEnabled: hasScript });
    context.setDefaultTimeout(20_000);
    const page = await context.newPage();
    page.on('pageerror', (error) => this.complaints.push(String(error)));
    page.on('console', (message) => {
      if (/Content Security Policy/.test(message.text())) this.complaints.push(message.text());
    });
    return page;
  }

  /** Signs in with the token that a bridge's first start made. */
  async signIn(page: Page, bridge: BridgeProcess): Promise<void> {
    await page.goto(`${bridge.webUrl}/sign-in`);
    await page.getByLabel('Token').fill(readFileSync(join(bridge.dataFolder, 'admin-token'), 'utf8'));
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Runs' }).waitFor();
  }

  async close(): Promise<void> {
    await this.browser.close();
  }
}
