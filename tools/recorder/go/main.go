// Built inside a Kubernetes source tree: reads cases as JSON lines, writes each with what kube-scheduler does with it.
//
//	recorder -kind decisions -workers 2 < cases.jsonl > recordings.jsonl
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
)

const longestLine = 256 << 20

func main() {
	kind := flag.String("kind", "decisions", "decisions, queue or config")
	workers := flag.Int("workers", 2, "how many cases at a time")
	gates := flag.String("feature-gates", "", "as kube-scheduler takes them, for all cases")
	flag.Parse()
	if err := feature.DefaultMutableFeatureGate.Set(*gates); err != nil {
		fail(err)
	}
	klog.SetLogger(logr.Discard())
	record, ok := scheduler.Recorders[*kind]
	if !ok {
		fail(fmt.Errorf("there are no recordings of %q", *kind))
	}
	if err := run(record, *workers); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "recorder:", err)
	os.Exit(1)
}

type recording struct {
	Case   json.RawMessage `json:"case"`
	Result any             `json:"result"`
}

type answer struct {
	line []byte
	err  error
}

// run keeps the order of the cases.
func run(record func([]byte) (any, error), workers int) error {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<20), longestLine)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	queued := make(chan chan answer, workers)
	go func() {
		defer close(queued)
		slots := make(chan struct{}, workers)
		for lines.Scan() {
			given := append([]byte(nil), lines.Bytes()...)
			answered := make(chan answer, 1)
			slots <- struct{}{}
			go func() {
				line, err := one(record, given)
				answered <- answer{line, err}
				<-slots
			}()
			queued <- answered
		}
	}()
	for answered := range queued {
		got := <-answered
		if got.err != nil {
			return got.err
		}
		if _, err := out.Write(append(got.line, '\n')); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return out.Flush()
}

// one takes a case, or a recording of which only the case is taken.
func one(record func([]byte) (any, error), given []byte) ([]byte, error) {
	var known recording
	if err := json.Unmarshal(given, &known); err != nil {
		return nil, err
	}
	if known.Case == nil {
		known.Case = given
	}
	result, err := survived(record, known.Case)
	if err != nil {
		return nil, err
	}
	return json.Marshal(recording{known.Case, result})
}

// survived is the result, or that kube-scheduler panics: objects that no API server accepts may bring it to that.
func survived(record func([]byte) (any, error), given []byte) (result any, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			result = map[string]string{"panic": fmt.Sprint(reason)}
		}
	}()
	return record(given)
}
