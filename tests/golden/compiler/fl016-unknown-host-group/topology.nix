{ base, merge, ... }:
merge base {
  hostGroups.eu = { };
  hostGroups."eu/fra" = { };
  hosts.alpha.group = "eu/fr";
  hosts.beta.group = "asia/tokyo";
  services.chat = {
    replicas = 1;
    port = 100;
    placement.group = "eu/frb";
  };
}
