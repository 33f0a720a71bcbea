/** The board's mark: a sheet with a red initial rule, legible at 16 pixels on light and dark. */
export const iconSvg =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect x="1.5" y="1" width="13" height="14" rx="1.5" fill="#fbf9f4" stroke="#a82c14"/><path d="M4 4h3v4H4z" fill="#a82c14"/><path d="M8.5 4.5h4M8.5 7.5h4M4 10.5h8.5M4 12.5h6" stroke="#1d1b18" stroke-width="1.1"/></svg>'
