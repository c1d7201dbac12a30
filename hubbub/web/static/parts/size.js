// Tracks the size of an element, in CSS pixels.
import { useLayoutEffect, useState } from "../core/ui.js";

/** @returns {{width, height}}  Null until it has been drawn once. */
export function useSize(ref) {
  const [size, setSize] = useState(null);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([{ contentRect }]) => {
      setSize({ width: Math.round(contentRect.width), height: Math.round(contentRect.height) });
    });
    observer.observe(ref.current);
    return () => observer.disconnect();
  }, []);
  return size;
}
