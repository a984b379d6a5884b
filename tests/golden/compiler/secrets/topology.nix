# Secrets of services and hosts: one with several readers, of which one accepts two values, one with
# one reader, key pairs, and one that rotates.
{ base, merge, ... }:
merge base {
  services = {
    wiki.user = "wiki-js";
    gate = {
      hosts = [
        "alpha"
        "beta"
      ];
      port = 9100;
      visibility = "host";
      user = "gate";
    };
  };
  secrets = {
    session = {
      generate = "password";
      rotate = 30;
      readers = [
        {
          service = "gate";
          overlap = true;
          restart = "gate.service";
        }
        {
          service = "wiki";
          dependsOn = [ "cert-node" ];
        }
      ];
    };
    alone = {
      generate = "hex";
      length = 40;
      generation = 2;
      readers = [
        {
          service = "wiki";
          mode = "0440";
        }
      ];
    };
    daily = {
      generate = "password";
      length = 20;
      rotate = 1;
      readers = [ { host = "beta"; } ];
    };
    mesh = {
      generate = "wireguard";
      overlap = 600;
      public = ./public.json;
      readers = [
        { host = "alpha"; }
        {
          host = "beta";
          overlap = true;
        }
      ];
    };
  };
  providers.secret.hosts = [ "alpha" ];
  providers.config.hosts = [ "alpha" ];
}
