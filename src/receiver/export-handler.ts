import type { Request, Response } from 'express';
import type { Signal } from '../record/record-batch.js';
import type { ExportIntake } from './export-intake.js';
import { readBody } from './read-body.js';
import { MEDIA_TYPES, parseContentCoding, parseContentLength, parseEncoding } from './request-format.js';
import type { SenderGate } from './sender-gate.js';

/** Answers POST /v1/traces and /v1/logs: header, body, records, and 200 once they are durable. */
export class ExportHandler {
  /** @param gate asked before anything is read; everybody may send, for the first account, where it is left out */
  constructor(
    private readonly intake: ExportIntake,
    private readonly gate?: SenderGate,
  ) {}

  /** @throws RequestError, ShortageError, OtlpDecodeError, ConsumeError, which `refusalOf` turns into answers. */
  async handle(signal: Signal, request: Request, response: Response): Promise<void> {
    const accountId = await this.gate?.admit(request.headers.authorization, request.socket.remoteAddress ?? '');
    const encoding = parseEncoding(request.headers);
    const coding = parseContentCoding(request.headers['content-encoding']);
    const announcedBytes = parseContentLength(request.headers) ?? 0;
    const room = this.intake.makeRoom(announcedBytes);
    response.once('close', () => room.reservation.release());
    if (request.headers.expect !== undefined) response.writeContinue();

    const body = await readBody(request, { coding, announcedBytes }, room);
    const answer = await this.intake.take(signal, encoding, body, accountId);
    const headers = { 'Content-Type': MEDIA_TYPES[encoding], 'Content-Length': answer.byteLength };
    response.writeHead(200, headers).end(answer);
  }
}
