// A human-readable file size.

const UNITS = ["bytes", "KB", "MB", "GB", "TB"];

export function sizeOf(bytes) {
  let size = bytes;
  let unit = 0;
  while (size >= 999.5 && unit < UNITS.length - 1) {
    size /= 1000;
    unit++;
  }
  if (unit === 0) return bytes === 1 ? "1 byte" : `${bytes} bytes`;
  return `${size < 10 ? size.toFixed(1) : Math.round(size)} ${UNITS[unit]}`;
}

export const percent = (done, all) => (all ? Math.floor((100 * done) / all) : 0);
