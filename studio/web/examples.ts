// Initial files in a browser. `web.mjs` inserts them from the tutorial and the ARCx model.

declare const FILES: [name: string, text: string][];

export const EXAMPLES = FILES;
