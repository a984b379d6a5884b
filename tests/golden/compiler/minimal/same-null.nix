# Attributes without a default may be null.
{
  base,
  key,
  merge,
  ...
}:
merge (import ./topology.nix { inherit base key merge; }) {
  hosts.alpha = {
    group = null;
    instance = null;
    system = null;
  };
}
