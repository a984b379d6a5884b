# The example cluster.
_:
import ../../../cluster/cluster.nix
// {
  serial = 1784011430;
  rev = "8eeec934ae0dbeca3d7868c059568a65c08b2fc3";
}
