// Built inside a Kubernetes source tree: the plugins of a framework themselves, so that they can be asked one by one.
package runtime

import (
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// FilterPluginsOf are in the order in which they run.
func FilterPluginsOf(f framework.Framework) []fwk.FilterPlugin {
	return f.(*frameworkImpl).filterPlugins
}

// ScorePluginsOf are in the order in which they run.
func ScorePluginsOf(f framework.Framework) []fwk.ScorePlugin { return f.(*frameworkImpl).scorePlugins }

// PluginOf is the plugin of that name, nil if the framework has none.
func PluginOf(f framework.Framework, name string) fwk.Plugin {
	return f.(*frameworkImpl).pluginsMap[name]
}
