/** Audit of accepted cases: whether the guarantee is kept, by the verdicts on a random share of them. */

import type { Audit } from "../api";
import { count, exactPercent } from "../format";

export function AuditPanel({ audit, onOpen }: { audit: Audit; onOpen: (number: number) => void }) {
  const { tone, progress, note } = auditWords(audit);
  const { next } = audit;
  return (
    <section class="panel" aria-labelledby="audit-title">
      <h2 id="audit-title">Audit of accepted cases</h2>
      <p class={`certificate ${tone}`} role={audit.alarm ? "alert" : undefined} data-testid="audit">
        {audit.text}
      </p>
      <p data-testid="audit-progress">
        {progress}{" "}
        {audit.by_verdict && next !== null && (
          <button type="button" class="link" data-testid="audit-next" onClick={() => onOpen(next)}>
            Open the next audit case
          </button>
        )}
      </p>
      {note && <p class="faint">{note}</p>}
      <details data-testid="audit-details">
        <summary>How the audit works</summary>
        <p>
          {exactPercent(audit.share)} of the accepted cases are drawn at random.{" "}
          {audit.by_verdict
            ? "A case that a reviewer rejects or marks for correction counts as a failure."
            : "Each case counts with its loss in the table."}{" "}
          Cases count in the order of the draw. The result may be read at any time, and the audit may stop at any time.
        </p>
        <p class="faint">
          Random seed (checksum of the policy): <code>{audit.seed}</code>
        </p>
      </details>
    </section>
  );
}

export function auditWords({ alarm, confirmed, judged, total, counted, by_verdict }: Audit) {
  const cases = `${count(judged)} of ${count(total)} audit cases`;
  const waiting = judged - counted;
  return {
    tone: alarm ? "broken" : confirmed ? "holds" : "",
    progress: by_verdict ? `${cases} judged.` : `The loss of ${cases} is known.`,
    note: waiting > 0 ? `${count(waiting)} of them will count once the cases drawn before them are judged.` : "",
  };
}
