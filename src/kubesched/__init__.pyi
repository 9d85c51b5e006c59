from kubesched.api.errors import UserError as UserError
from kubesched.library.builders import NodeBuilder as NodeBuilder
from kubesched.library.builders import PodBuilder as PodBuilder
from kubesched.library.builders import make_node as make_node
from kubesched.library.builders import make_pod as make_pod
from kubesched.library.cluster import Cluster as Cluster
from kubesched.library.results import Result as Result

__version__: str
__all__: list[str]
