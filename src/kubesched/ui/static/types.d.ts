// What the server sends: the dataclasses of ui/model in camelCase.
export interface LabelKey { key: string; nodes: number; values: number }
export interface About {
  version: string; source: string; title: string; live: boolean;
  nodes: { nodes: number; cordoned: number; tainted: number; notReady: number };
  pods: number; pending: number; labels: LabelKey[]; groupBy: string; profiles: string[]; extenders: number; weights: Record<string, number>;
  shadow: boolean; schedules: boolean; experiments: boolean; release: string; releases: string[];
}
export interface PackedColumns { shares: Record<string, string>; flags: string; pods: string }
export interface NodeMap {
  version: [number, number]; groupBy: string; names: string[]; groups: string[]; columns: PackedColumns;
}
export interface MapChanges {
  reload?: boolean; version: [number, number]; rows: number[]; columns: PackedColumns;
  renamed: Record<string, [string, string]>;
}
export interface QueueCounts { active: number; backoff: number; unschedulable: number; gated: number }
export interface DecisionEntry {
  number: number; at: number; pod: string; priority: number; outcome: string; node: string; text: string;
  attempt: number; plugins: string[]; reasons: [string, number][]; milliseconds?: number | null; cause: string;
  times: number; first?: number | null;
}
export interface News {
  map?: MapChanges; decisions?: DecisionEntry[]; skipped?: number; queue?: QueueCounts; saying?: string; now: number;
  /** Whether this is another time than before, so that decisions begin anew. */
  again?: boolean;
}
export interface Room {
  workload: WorkloadName; example: string; running: number; more: number; atLeast: boolean; nodes: number; requests: Record<string, string>;
}
export interface CauseGroup {
  id: string; workload?: WorkloadName; title: string; plugins: string[]; reasons: [string, number][]; pods: number;
  places: Record<string, number>; highestPriority: number; longestWaitSeconds?: number; wakes: string[];
  examples: string[];
}
export interface WaitingPod {
  pod: string; priority: number; place: string; attempts: number; waitsSeconds?: number; triedSeconds?: number; nextTrySeconds?: number;
  requests: Record<string, string>;
}
export interface Reason { text: string; nodes: number; examples: string[] }
export interface Step { plugin: string; came: number; passed: number; reasons: Reason[] }
export interface NearMiss { node: string; text: string; lacking: { resource: string; amount: string }[]; plugins: string[] }
export interface ScoredNode { node: string; total: number; parts: number[]; raw: number[] }
export interface Ranking { plugins: [string, number][]; nodes: ScoredNode[]; scored: number; ties: number }
export interface Lead { over: string; points: number; parts: [string, number][] }
export interface Victim { pod: string; priority: number; budgets: string[] }
export interface Eviction { node: string; victims: Victim[]; budgetViolations: number }
export interface Verdict {
  outcome: string; node: string; message: string; nodes: number; fitting: number; nominated: boolean; gate?: string;
  funnel: Step[]; silent: number; misses: NearMiss[]; ranking?: Ranking; lead?: Lead; eviction?: Eviction;
}
export interface PodView {
  pod: string; workload: WorkloadName; podGroup: string; priority: number; scheduler: string; phase: string; node: string;
  nominatedNode: string; labels: Record<string, string>; manifest: any; yaml: string; waiting?: WaitingPod;
  cause: string; wakes: string[]; history: DecisionEntry[]; now: number; verdict?: Verdict;
}
export interface ObjectChange { verb: string; apiVersion: string; kind: string; namespace: string; name: string; patch?: unknown; object?: unknown }
export interface Remedy { steps: { sort: string; text: string }[]; node: string; changes: ObjectChange[]; cost?: string; touches?: string[] }
export interface Remedies { pod: string; found: Remedy[]; tried: number; exhaustive: boolean }
export interface PendingGroup {
  workload: string; why: string; pods: string[]; message: string; pools: { pool: string; nodes: number; places: number }[]; remedies?: Remedies;
}
export interface PendingHelp { nodes: number; placed: unknown[]; groups: PendingGroup[]; leftOut: number }
export interface Resource { name: string; allocatable: string; requested: string; left: string; share: number; used?: string; usedShare?: number }
export interface PodOnNode {
  pod: string; priority: number; shares: Record<string, number>; assumed: boolean; terminating: boolean;
  workload: string; phase: string;
}
export interface DeviceView { driver: string; pool: string; name: string; claims: string[]; taints: string[] }
export interface Fit { example: string; count: number; fits: boolean; whyNot: string }
export interface MoreOf { workload: WorkloadName; example: string; count: number; more: number; atLeast: boolean }
export interface NodeView {
  name: string; flags: number; labels: Record<string, string>; taints: string[]; conditions: [string, string][];
  resources: Resource[]; podCount: number; pods: PodOnNode[]; offset: number; nominated: string[];
  devices: DeviceView[]; room: MoreOf[]; waiting: Fit[];
}
export interface PreemptionEntry {
  at: number; pod: string; priority: number; node: string; victims: [string, number][]; why: string;
}
export interface QueueView {
  now: number; counts: QueueCounts; samples: [number, number, number, number, number, number, number][];
  outcomes: Record<string, number>;
  latency?: { attempts: number; p50: number; p90: number; p99: number; slowest: number };
  plugins: { plugin: string; point: string; microseconds: number; questions?: number; failures?: number }[]; preemptions: PreemptionEntry[];
}
export interface Standing { node: string; rejection: string; total?: number; parts: [string, number][] }
export interface ShadowComparison {
  pod: string; judgement: string; cause: string; why: string; theirNode: Standing; ourNode?: Standing;
  nodes: number; fitting: number; message: string; said: string;
}
export interface ShadowCause { id: string; judgement: string; title: string; pods: number; examples: string[] }
export interface ShadowView {
  now: number; pods: number; agreeing: number; judgements: [string, number][]; overTime: [number, number, number][]; spanSeconds: number;
  causes: ShadowCause[]; differences: { comparison: ShadowComparison; agoSeconds: number }[];
}
export interface Moved { pod: string; fromNode: string; toNode: string; isNew: boolean; unmanaged: boolean }
export interface Count { before: number; after: number }
export interface Fullness { name: string; nodes: Count; pods: Count; resources: Record<string, { before?: number; after?: number }> }
export interface WhatIf {
  changes: string[]; moved: Moved[]; placed: Moved[]; gone: string[]; interrupted: string[];
  waiting: { pod: string; fromNode: string; reason: string; isNew: boolean; unmanaged: boolean }[];
  evictions: { preemptor: string; node: string; victims: string[] }[];
  budgets: { budget: string; wanted: number; before: number; after: number; leaving: number; short: boolean; slows: boolean }[];
  total: Fullness; zones: Fullness[];
}
/** How many pods have which. */
export interface Fates { moved?: number; waiting?: number; placed?: number; gone?: number; evicted?: number }
export interface WhatIfView {
  before: NodeMap; after: NodeMap; difference: WhatIf; pods: Fates;
  workloads: { workload: WorkloadName; pods: Fates; reasons: [string, number][] }[];
}
export interface SettingChange { setting: string; before: string; after: string }
export interface UpgradedPods {
  workload: WorkloadName; kind: string; isPlaced: boolean; pods: string[]; count: number; before: string; after: string;
}
export interface UpgradeCause {
  title: string; causes: { name: string; words: string; reference: string }[]; pods: number; rows: UpgradedPods[]; leftOut: number;
}
export interface UpgradeView {
  before: string; after: string; summary: string; method: string; refused: string[]; groups: UpgradeCause[];
  fields: SettingChange[]; gates: SettingChange[];
}
export interface Plan {
  goal: string; outcome: "found" | "partial" | "unchanged" | "impossible"; reason: string; value: number;
  moves: { pod: string; fromNode: string; toNode: string; wave: number }[]; placements: { pod: string; node: string; wave: number }[];
  waiting: string[]; nodes: { name: string; fate: string }[];
  bound?: { value: number; unit: string; relaxes: string[]; proof: string; scarce: { what: string; share: number }[] };
  check?: { how: string[]; needsNominations: boolean };
}
export interface PlanView { plan: Plan; before: NodeMap; waves: MapChanges[]; after: NodeMap }
export interface Timeline { begin: number; end: number; now: number; decisions: number[]; differences: number }
/** Namespace, kind, name. */
export type WorkloadName = [string, string, string];
export interface Found {
  nodes: string[]; workloads: WorkloadName[]; pods: [string, string, string][]; moreNodes: number; moreWorkloads: number; morePods: number;
}
export interface WorkloadLine {
  namespace: string; kind: string; name: string; wanted?: number; pods: number; phases: Record<string, number>; nodes: number; priority: number;
  requests: Record<string, string>;
}
export interface WorkloadView {
  line: WorkloadLine; zones: [string, number][]; nodes: [string, number][]; causes: [string, number][];
  refusal?: string; budgets: { name: string; says: string; allowed: number }[]; usage: Record<string, string>; requested: Record<string, string>;
  example: string; manifest: any; yaml: string; room?: Room; verdict?: Verdict; members: [string, string, string][];
}
export interface NodeLine {
  name: string; zone: string; states: string[]; pods: number; requested: Record<string, number>; used: Record<string, number>;
}
export interface PodLine {
  pod: string; kind: string; workload: string; phase: string; node: string; priority: number; requests: Record<string, string>;
  used: Record<string, string>; ageSeconds?: number;
}
export interface Listing<T> { total: number; offset: number; rows: T[]; states: [string, number][]; namespaces: string[] }
/** Of each pod its name, workload, phase, and shares in base64. */
export interface Slices { rows: Record<string, [string, string, string, string][]>; resources: string[] }
/** A view that is shown: `leave` is called when another takes its place. */
export interface Shown { leave?: () => void }
