set -eu
KUBECTL=${KUBECTL:-kubectl}
TRIES=${TRIES:-120}    # of 5 seconds each: how long to wait for a disruption budget, or for a pod to be ready
PAUSE=${PAUSE:-5}

surprise() { echo "Stopped: $*. Nothing else was done; make a new plan." >&2; exit 1; }

# pods NAMESPACE OWNER: owner, name, uid, node and readiness of each pod of the owner; "-" stands for none
pods() {
  $KUBECTL get pods -n "$1" -o go-template='{{range .items}}{{$owner := "-"}}{{range .metadata.ownerReferences}}{{if .controller}}{{$owner = printf "%s/%s" .kind .name}}{{end}}{{end}}{{$owner}} {{.metadata.name}} {{.metadata.uid}} {{or .spec.nodeName "-"}} {{range .status.conditions}}{{if eq .type "Ready"}}{{.status}}{{end}}{{end}}
{{end}}' | grep "^$2 " || true
}

# real NODE: what a node that the plan adds is called in the cluster
real() {
  for pair in ${NODES_ADDED:-}; do
    case "$pair" in "$1="*) echo "${pair#*=}"; return ;; esac
  done
  echo "$1"
}

# added TYPES NODE...: these nodes must be there, and NODES_ADDED must say which is which
added() {
  types=$1
  shift
  for node in "$@"; do
    [ "$(real "$node")" != "$node" ] || { echo "Add these nodes first: $types. Then say what each is called: NODES_ADDED='$node=NAME ...' for $*" >&2; exit 1; }
  done
}

# nominate NAMESPACE POD NODE
nominate() {
  $KUBECTL patch pod "$2" -n "$1" --subresource=status --type=merge -p "{\"status\":{\"nominatedNodeName\":\"$3\"}}" > /dev/null
}

# evict NAMESPACE POD UID OWNER NODE: the pod must still be on the node where the plan saw it
evict() {
  line=$(pods "$1" "$4" | grep " $2 $3 " || true)
  case "$line" in *" $5 "*) ;; *) surprise "pod $1/$2 is not on $5 any more" ;; esac
  pods "$1" "$4" | cut -d' ' -f3 > "$DIR/before"
  tries=0
  until printf '{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"%s","namespace":"%s"},"deleteOptions":{"preconditions":{"uid":"%s"}}}' "$2" "$1" "$3" |
      $KUBECTL create --raw "/api/v1/namespaces/$1/pods/$2/eviction" -f - > /dev/null; do
    tries=$((tries + 1))
    [ "$tries" -lt "$TRIES" ] || surprise "pod $1/$2 may not be evicted"
    sleep "$PAUSE"
  done
}

# follow NAMESPACE OWNER TARGET: nominate the pod that comes in the place of the one that was evicted last
follow() {
  tries=0
  while :; do
    line=$(pods "$1" "$2" | grep -v -F -f "$DIR/before" | head -n 1)
    [ -z "$line" ] || break
    tries=$((tries + 1))
    [ "$tries" -lt "$TRIES" ] || surprise "$2 in $1 made no pod in the place of the one that was evicted"
    sleep "$PAUSE"
  done
  set -- "$1" "$2" "$(real "$3")" $line
  [ "$7" != - ] || nominate "$1" "$5" "$3"
  echo "$1 $2 $6 $3" >> "$DIR/wave"
}

# place NAMESPACE POD OWNER TARGET: nominate a pod that waits
place() {
  set -- "$1" "$2" "$3" "$(real "$4")" $(pods "$1" "$3" | grep " $2 " || true)
  [ $# -gt 4 ] || surprise "pod $1/$2 is not there"
  [ "$8" != - ] || nominate "$1" "$2" "$4"
  echo "$1 $3 $7 $4" >> "$DIR/wave"
}

# settle: wait until all pods of the wave are ready
settle() {
  while read -r namespace owner uid target; do
    tries=0
    while :; do
      set -- $(pods "$namespace" "$owner" | grep " $uid " || true)
      [ $# -gt 0 ] || surprise "a new pod of $owner in $namespace is gone"
      if [ "$4" != - ] && [ "$4" != "$target" ] && [ "$STRICT" = yes ]; then
        surprise "pod $namespace/$2 went to $4 instead of $target"
      fi
      [ "${5:-}" != True ] || break
      tries=$((tries + 1))
      [ "$tries" -lt "$TRIES" ] || surprise "pod $namespace/$2 is not ready"
      sleep "$PAUSE"
    done
    echo "  $namespace/$2 is ready on $4"
  done < "$DIR/wave"
  : > "$DIR/wave"
}

DIR=$(mktemp -d)
trap 'rm -rf "$DIR"' EXIT
: > "$DIR/wave"
