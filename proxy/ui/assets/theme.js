// Light or dark: as the system says, unless the reader says otherwise.
import { h } from './dom.js'

const KEY = 'postern-theme'
const NEXT = { auto: 'light', light: 'dark', dark: 'auto' }
let theme = localStorage.getItem(KEY) ?? 'auto'
if (!NEXT[theme]) theme = 'auto'
document.documentElement.dataset.theme = theme

export function themeSwitch() {
  return h('button.theme', { type: 'button', title: 'Colours: as the system, light or dark', onclick: turn }, 'Theme: ', theme)
}

function turn(e) {
  theme = NEXT[theme]
  localStorage.setItem(KEY, theme)
  document.documentElement.dataset.theme = theme
  e.currentTarget.lastChild.data = theme
}
