// Built inside a Kubernetes source tree: how kube-scheduler reads, completes and validates a configuration file.
package scheduler

import (
	"bytes"
	"encoding/json"
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	configv1 "k8s.io/kube-scheduler/config/v1"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
)

type configurationResult struct {
	ID          string          `json:"id"`
	Defaulted   json.RawMessage `json:"defaulted,omitempty"`
	Errors      []string        `json:"errors,omitempty"`
	DecodeError string          `json:"decodeError,omitempty"`
}

func init() { Recorders["config"] = recordConfiguration }

// recordConfiguration takes a case and gives its result; an error says that the case is not one.
func recordConfiguration(given []byte) (any, error) {
	var asked struct {
		ID   string `json:"id"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(given, &asked); err != nil {
		return nil, err
	}
	result := configurationResult{ID: asked.ID}
	configured, err := decodeConfiguration([]byte(asked.Text))
	if err != nil {
		result.DecodeError = err.Error()
		return result, nil
	}
	if err := validation.ValidateKubeSchedulerConfiguration(configured); err != nil {
		for _, mistake := range utilerrors.Flatten(err).Errors() {
			result.Errors = append(result.Errors, mistake.Error())
		}
		return result, nil
	}
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	if !ok {
		return nil, errors.New("this tree cannot write JSON")
	}
	var written bytes.Buffer
	if err := scheme.Codecs.EncoderForVersion(info.Serializer, configv1.SchemeGroupVersion).Encode(configured, &written); err != nil {
		return nil, err
	}
	result.Defaulted = written.Bytes()
	return result, nil
}

func decodeConfiguration(given []byte) (*schedulerapi.KubeSchedulerConfiguration, error) {
	obj, gvk, err := scheme.Codecs.UniversalDecoder().Decode(given, nil, nil)
	if err != nil {
		return nil, err
	}
	configured, ok := obj.(*schedulerapi.KubeSchedulerConfiguration)
	if !ok {
		return nil, errors.New(gvk.String() + " is no KubeSchedulerConfiguration")
	}
	configured.TypeMeta.APIVersion = gvk.GroupVersion().String()
	return configured, nil
}
