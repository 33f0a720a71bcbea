/** Routes of the figures: for people, for Prometheus, and for health checks. */

import { plain } from '../http/answers.ts'
import type { Exchange } from '../http/port.ts'
import type { Doors, RouteHandler } from '../http/routes.ts'
import { type Figures, metricsText, statsData } from './figures.ts'

export type FigureDoorOptions = {
  /** Undefined: they are not known. */
  readonly tell: (answer: (figures: Figures | undefined) => void) => void
  readonly doors: () => Doors
}

export function figureDoors({ tell, doors }: FigureDoorOptions): Readonly<Record<string, RouteHandler>> {
  const told = (exchange: Exchange, answer: (figures: Figures) => void): void =>
    tell((found) => (found === undefined ? exchange.drop() : answer(found)))
  return {
    '/api/stats': (exchange) =>
      told(exchange, (found) =>
        doors().send(exchange, { status: 200, body: JSON.stringify({ ok: true, data: statsData(found) }) }),
      ),
    '/metrics': (exchange) =>
      told(exchange, (found) =>
        exchange.reply(200, plain('text/plain; version=0.0.4; charset=utf-8'), metricsText(found)),
      ),
    '/healthz': (exchange) => exchange.reply(200, plain('text/plain; charset=utf-8'), 'ok\n'),
  }
}
