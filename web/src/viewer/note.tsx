/** What is not known of a picture. */

import type { View } from "../api";

/** Says of a volume that nothing tells where in the body it lies: left may be right. */
export function OrientationNote({ view }: { view: View }) {
  if (view.dimensions === 2 || view.plane.letters) return null;
  return (
    <p class="orientation-note" data-testid="orientation-note">
      orientation unknown
    </p>
  );
}
