// Numbers in the reader's language.

const whole = new Intl.NumberFormat();
const moneyByDigits = new Map(); // creating a format is slow, using it is not

export const count = (n) => whole.format(n);

/** US dollars; below one with two significant digits: $0.0042. Empty if unknown. */
export function dollars(usd) {
  if (usd == null) return "";
  const digits = usd > 0 && usd < 1 ? Math.min(12, 1 - Math.floor(Math.log10(usd))) : 2;
  if (!moneyByDigits.has(digits)) {
    const format = new Intl.NumberFormat(undefined, {
      style: "currency", currency: "USD", currencyDisplay: "narrowSymbol",
      minimumFractionDigits: digits, maximumFractionDigits: digits,
    });
    moneyByDigits.set(digits, format);
  }
  return moneyByDigits.get(digits).format(usd);
}
