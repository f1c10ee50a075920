from actions import bundle
from tea_plugin import serve

serve(bundle)
