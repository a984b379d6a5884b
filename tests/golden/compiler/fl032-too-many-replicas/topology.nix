{ base, merge, ... }:
merge base {
  hosts.alpha = {
    tags = [ "ssd" ];
    capabilities = [ "gpu" ];
  };
  hosts.beta.kind = "device";
  services.wiki = {
    host = "";
    replicas = 2;
  };
  services.fast = {
    replicas = 2;
    port = 1;
    placement.tags = [ "ssd" ];
  };
  services.typo = {
    replicas = 1;
    port = 4;
    placement.tags = [ "sdd" ];
    placement.capabilities = [ "gpu" ];
  };
  services.none = {
    replicas = "all";
    port = 3;
    placement.tags = [ "none" ];
  };
  services.brain = {
    replicas = 2;
    port = 2;
    placement.capabilities = [ "gpu" ];
  };
}
