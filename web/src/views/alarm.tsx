/** Says above the worklist that an alarm rings: what is accepted there is then accepted without a promise. */

import type { Alarm, Run } from "../api";
import { toldOf } from "../alarms";
import { api, closedAlarm, go, lastStructure, returns } from "../desk";
import { useLoaded, useStore } from "../store";

export function AlarmNote({ run }: { run: Run }) {
  const returned = useStore(returns);
  const closed = useStore(closedAlarm);
  const { value } = useLoaded((signal) => api.alarms(signal), [run.version, returned]);
  const told = value && toldOf(value, run.structures.length > 1);
  if (!told || told === closed) return null;
  return (
    <div class="note alarm-note" role="alert" data-testid="alarm">
      <span>
        <b>Drift alarm</b> {told}
      </span>
      <button type="button" data-testid="alarm-open" onClick={() => open(value[0]!)}>
        See Monitoring
      </button>
      <button
        type="button"
        class="quiet"
        data-testid="alarm-close"
        aria-label="Close the alarm for this session"
        title="Close for this session"
        onClick={() => closedAlarm.set(told)}
      >
        ✕
      </button>
    </div>
  );
}

function open({ structure }: Alarm): void {
  if (structure) lastStructure.set(structure);
  go({ view: "monitoring", number: null });
}
