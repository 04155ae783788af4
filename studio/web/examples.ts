// The files that a browser has before its user writes any. What stands here is put in by `web.mjs`, from the tutorial and the ARCx model.

declare const FILES: [name: string, text: string][];

export const EXAMPLES = FILES;
