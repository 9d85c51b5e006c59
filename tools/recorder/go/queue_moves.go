// Built inside a Kubernetes source tree: the moves of pods between queues, which the queue tells its log.
package scheduler

import (
	"fmt"
	"strings"

	"github.com/go-logr/logr"
)

const loudest = 5 // the level at which moves are told

// moveSink is a log that keeps what it is told of moves, and nothing else.
type moveSink struct{ life *queueLife }

func (*moveSink) Init(logr.RuntimeInfo)            {}
func (*moveSink) Enabled(level int) bool           { return level <= loudest }
func (*moveSink) Error(error, string, ...any)      {}
func (s *moveSink) WithValues(...any) logr.LogSink { return s }
func (s *moveSink) WithName(string) logr.LogSink   { return s }
func (s *moveSink) Info(_ int, text string, said ...any) {
	named, ok := tellsOfMove(text)
	if !ok {
		return
	}
	fields := map[string]string{}
	for i := 0; i+1 < len(said); i += 2 {
		fields[fmt.Sprint(said[i])] = fmt.Sprint(said[i+1])
	}
	move := moveEntry{fields[named], fields["event"], fields["queue"], s.life.now()}
	// After an attempt the queue tells of every move once more, and only then of those to the unschedulable pods.
	if _, summary := fields["hint"]; summary && (move.Queue != "Unschedulable" || s.life.hasMove(move)) {
		return
	}
	if strings.HasPrefix(move.Event, "PopFromBackoffQ") {
		return // recorded as the place that the pod was popped from
	}
	s.life.step.Moves = append(s.life.step.Moves, move)
}

func (l *queueLife) hasMove(move moveEntry) bool {
	for _, known := range l.step.Moves {
		if known == move {
			return true
		}
	}
	return false
}
