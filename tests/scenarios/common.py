# Put before every scenario. What it uses of the NixOS test driver: machines by
# name, start_all, subtest.
import json
import time
