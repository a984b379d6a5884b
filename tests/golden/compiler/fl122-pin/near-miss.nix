# A pin to a drained host takes effect again later.
{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts.alpha.capacity = 2;
  hosts.gamma = {
    address = "192.0.2.3";
    sshHostKey = key "gamma";
    drain = true;
  };
  services.apart = {
    replicas = 1;
    port = 1;
    placement = {
      apart = [ "wiki" ];
      pins = [ "alpha" ];
    };
  };
  services.both = {
    replicas = 2;
    port = 3;
    placement.pins = [
      "beta"
      "alpha"
    ];
  };
  services.drained = {
    replicas = 1;
    port = 2;
    placement.pins = [ "gamma" ];
  };
  roles.reader.services = [
    "apart"
    "both"
    "drained"
    "wiki"
  ];
}
