{ base, merge, ... }: merge base {
  hosts.alpha.tags = [ "ssd" ];
  hosts.beta.tags = [ "ssd" ];
  services.wiki = { host = ""; replicas = 2; };
  services.fast = { replicas = 2; port = 1; placement.tags = [ "ssd" ]; };
}
