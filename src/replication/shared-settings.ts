/** Settings that must be the same on a leader and its followers. The leader sends its own, and a follower reports which differ. */
import { limitsText } from '../../actors/kernel/limits-given.ts'
import type { Config } from '../config.ts'
import type { SettingName } from '../environment.ts'

/** By name. A board of another release may have others. */
export type SharedSettings = Readonly<Record<string, string>>

type Shared = Pick<Config, 'operators' | 'baseUrl' | 'boardName' | 'boardAbout' | 'boardContact'>

/** The same text for the same meaning, whatever the order in which it was given. */
export function sharedSettings({ operators, baseUrl, boardName, boardAbout, boardContact }: Shared): SharedSettings {
  return {
    OPERATORS: [...operators].sort().join(),
    LIMITS: limitsText,
    BASE_URL: baseUrl,
    BOARD_NAME: boardName,
    BOARD_ABOUT: boardAbout,
    BOARD_CONTACT: boardContact,
  } satisfies Partial<Record<SettingName, string>>
}

/** The names of settings that both have and that differ. */
export function differingSettings(own: SharedSettings, others: SharedSettings): string[] {
  return Object.keys(own).filter((name) => Object.hasOwn(others, name) && others[name] !== own[name])
}

export function isSharedSettings(value: unknown): value is SharedSettings {
  return typeof value === 'object' && value !== null && Object.values(value).every((each) => typeof each === 'string')
}
