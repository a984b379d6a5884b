{ base, merge, ... }:
merge base {
  hosts.alpha.tags = [ "ssd" ];
  hosts.beta.tags = [ "ssd" ];
  services.wiki = {
    host = "";
    replicas = 2;
  };
  services.every = {
    replicas = "all";
    port = 3;
    placement.tags = [ "ssd" ];
  };
  services.fast = {
    replicas = 2;
    port = 1;
    placement.tags = [ "ssd" ];
  };
}
