# Three hosts issue certificates, serve documents, and share the state of all providers; and the
# same cluster with the state of drhorrible's files moved into the store.
base:
let
  hosts = [
    "drhorrible"
    "raishan"
    "mgmt01"
  ];
  providers = base.providers // {
    cert = base.providers.cert // {
      inherit hosts;
    };
    config = base.providers.config // {
      inherit hosts;
    };
    store = {
      kind = "etcd";
      inherit hosts;
    };
  };
in
[
  {
    name = "replicated";
    change = { inherit providers; };
  }
  {
    name = "moved";
    change.providers = providers // {
      store = providers.store // {
        from = [ "drhorrible" ];
      };
    };
  }
]
