# Wrong secrets.
{ base, merge, ... }:
merge base {
  secrets = {
    nobody = {
      generate = "hex";
      readers = [ ];
    };
    odd = {
      generate = "age";
      length = 32;
      readers = [
        { }
        {
          service = "wiki";
          host = "alpha";
        }
        { service = "wikki"; }
        { host = "gamma"; }
        { group = "us"; }
        {
          host = "alpha";
          tags = [ "db" ];
        }
      ];
    };
    text = {
      generate = "password";
      public = ./public.json;
      readers = [
        { service = "wiki"; }
        { service = "wiki"; }
      ];
    };
    each = {
      generate = "ssh";
      perHost = true;
      public = ./public.json;
      readers = [ { host = "alpha"; } ];
    };
    weak = {
      generate = "rot13";
      length = 8;
      rotate = "monthly";
      public = "public.json";
      readers = [ { service = 3; } ];
    };
    a-name-that-is-as-long-as-a-name-of-a-secret-may-be.generate = "hex";
    a-name-that-is-as-long-as-a-name-of-a-secret-maybe-or-so.generate = "hex";
  };
}
