{ base, merge, ... }:
merge base {
  hosts.alpha.capacity = 1;
  services.apart = {
    replicas = 1;
    port = 1;
    placement = {
      apart = [ "wiki" ];
      pins = [ "beta" ];
    };
  };
  services.far = {
    replicas = 1;
    port = 2;
    placement = {
      pins = [ "alpha" ];
      tags = [ "none" ];
    };
  };
  services.both = {
    replicas = 1;
    port = 3;
    placement.pins = [
      "beta"
      "alpha"
    ];
  };
  services.unknown = {
    replicas = 1;
    port = 4;
    placement = {
      pins = [ "betta" ];
      apart = [
        "unknown"
        "wikki"
      ];
    };
  };
  services.tagged = {
    replicas = 1;
    port = 5;
    placement = {
      pins = [ "alpha" ];
      tags = [ "ssd" ];
    };
  };
  services.every = {
    replicas = "all";
    port = 6;
    placement = {
      pins = [ "alpha" ];
      spread = "even";
    };
  };
  hosts.beta.tags = [ "ssd" ];
  roles.reader.services = [
    "apart"
    "both"
    "every"
    "far"
    "tagged"
    "unknown"
    "wiki"
  ];
}
