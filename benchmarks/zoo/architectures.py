"""The architectures, by family. The package that defines an architecture creates it with random weights.

`EXPORTS` has, for each family, a function that writes one architecture as an ONNX file, and the names that it accepts.
"""

import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from cgraph.record import Record

TOKENS, LENGTH = 200, 24  # of a text
SMALL = {
    "vocab_size": TOKENS, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96,
    "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "num_key_value_heads": 2,
    "head_dim": 16, "embedding_size": 32, "attn_implementation": "eager", "hidden_dim": 96, "layer_types": None,
}  # fmt: skip
OLDER = {  # names of some configurations for the same sizes
    "d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "n_layer": 2, "n_embd": 64, "rotary_dim": 8,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "block_sizes": [1, 1],
    "attention_types": [[["global", "local"], 1]],
}  # fmt: skip

OPS: list[Any] = []  # libraries of ops, which live as long as these objects


class Family(Record):
    """Architectures that one function exports.

    Fields
        names: of the architectures
        write: writes one to a path, given its name
    """

    names: Sequence[str]
    write: Callable[[str, Path], None]


def torchvision_without_ops() -> None:
    """Let torchvision load with a torch of another build, with slow Python versions of its compiled ops.

    The package index has CPU builds of torch alone; a CUDA build has its own ops. An export runs each network once, so
    slow ops are enough.
    """
    import torch

    if torch.version.cuda or hasattr(torch.ops.torchvision, "nms"):
        return
    library = torch.library.Library("torchvision", "DEF")
    OPS.append(library)
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.impl(name, greedy_nms, "CPU")
    library.define(
        "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
        "int sampling_ratio, bool aligned) -> Tensor"
    )
    library.impl("roi_align", lambda x, rois, *options: x.new_zeros(len(rois), x.shape[1], *options[1:3]), "CPU")
    import torchvision

    for module in (torchvision.extension, sys.modules["torchvision.ops.roi_align"]):
        module._has_ops = has_ops  # type: ignore[attr-defined]


def has_ops() -> bool:
    """Report that torchvision has its ops. This is a separate function because torch compiles its source."""
    return True


def greedy_nms(boxes: Any, scores: Any, threshold: float) -> Any:
    """Return the indices of boxes after non-maximum suppression, by descending score."""
    import torch
    from torchvision.ops import box_iou

    rest, best = scores.argsort(descending=True), []
    while len(rest):
        best.append(rest[0])
        rest = rest[1:][box_iou(boxes[rest[:1]], boxes[rest[1:]])[0] <= threshold]
    return torch.stack(best) if best else rest


def from_torch(module: Any, args: tuple[Any, ...], path: Path, axes: Any = None, dynamo: bool = False) -> None:
    """Export a module with the TorchScript exporter, or with dynamo."""
    import torch

    module.eval()
    names = [f"x{i}" for i in range(len(args))]
    with torch.no_grad():
        if dynamo:
            torch.onnx.export(module, args, str(path), input_names=names, dynamo=True, external_data=False)
        else:
            torch.onnx.export(
                module, args, str(path), input_names=names, dynamic_axes=axes, opset_version=17, dynamo=False
            )


def torchvision_network(name: str, path: Path) -> None:
    import torch

    torchvision_without_ops()
    import torchvision

    torch.manual_seed(0)
    size = 299 if name == "inception_v3" else 224
    options = {"init_weights": True} if name in ("inception_v3", "googlenet") else {}
    module = torchvision.models.get_model(name, weights=None, **options)
    from_torch(module, (torch.randn(1, 3, size, size),), path, {"x0": {0: "N"}})


def segmentation(name: str, path: Path) -> None:
    import torch

    torchvision_without_ops()
    import torchvision

    torch.manual_seed(0)
    module = torchvision.models.get_model(name, weights=None, weights_backbone=None)
    from_torch(module, (torch.randn(1, 3, 128, 128),), path)


def video(name: str, path: Path) -> None:
    import torch

    torchvision_without_ops()
    import torchvision

    torch.manual_seed(0)
    module = torchvision.models.get_model(name, weights=None)
    frames, size = (16, 224) if name in ("mvit_v1_b", "s3d") else (8, 112)
    from_torch(module, (torch.randn(1, 3, frames, size, size),), path)


def detector(name: str, path: Path) -> None:
    import torch

    torchvision_without_ops()
    import torchvision

    torch.manual_seed(0)
    module = torchvision.models.get_model(name, weights=None, weights_backbone=None)
    from_torch(module, ([torch.rand(3, 320, 320)],), path)


def timm_network(name: str, path: Path) -> None:
    import torch

    torchvision_without_ops()
    import timm

    torch.manual_seed(0)
    module = timm.create_model(name, pretrained=False, exportable=True)
    from_torch(module, (torch.randn(1, *module.default_cfg["input_size"]),), path, {"x0": {0: "N"}})


def timm_by_dynamo(name: str, path: Path) -> None:
    import torch

    torchvision_without_ops()
    import timm

    torch.manual_seed(0)
    module = timm.create_model(name, pretrained=False, exportable=True)
    from_torch(module, (torch.randn(1, *module.default_cfg["input_size"]),), path, dynamo=True)


def small_config(kind: Any) -> Any:
    """Return a small configuration of transformers: small values for the size options that the class has."""
    known = kind()
    options = {key: value for key, value in SMALL.items() if hasattr(known, key) and value is not None}
    options |= {key: value for key, value in OLDER.items() if hasattr(known, key) and key not in kind.attribute_map}
    return kind(**{key: value for key, value in options.items() if not isinstance(getattr(kind, key, None), property)})


def module_of(model: Any, *names: str) -> Any:
    """Return a model of transformers as a module that takes the named inputs and returns the first result."""
    import torch

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *values: Any) -> Any:
            return self.model(**dict(zip(names, values)), return_dict=False)[0]

    return Module()


def small_text_module(name: str) -> tuple[Any, Any]:
    """Return a small text model as a module of ids and mask, and example ids."""
    import torch

    torchvision_without_ops()
    import transformers

    torch.manual_seed(0)
    config = small_config(getattr(transformers, f"{name}Config"))
    if hasattr(config, "use_cache"):
        config.use_cache = False
    model = getattr(transformers, f"{name}Model")(config)
    names = ["input_ids", "attention_mask", *["decoder_input_ids"] * bool(config.is_encoder_decoder)]
    ids = torch.randint(3, TOKENS, (2, LENGTH))
    return module_of(model, *names), (ids, torch.ones_like(ids), ids)[: len(names)]


def text_network(name: str, path: Path) -> None:
    module, args = small_text_module(name)
    from_torch(module, args, path, {f"x{i}": {0: "N", 1: "L"} for i in range(len(args))})


def text_by_dynamo(name: str, path: Path) -> None:
    module, args = small_text_module(name)
    from_torch(module, args, path, dynamo=True)


def text_model(name: str, path: Path) -> None:
    models().write_model(name, path)


def wide_text_model(name: str, path: Path) -> None:
    models().write_model(name, path, wide=True)


def text_model_by_dynamo(name: str, path: Path) -> None:
    models().write_model(name, path, dynamo=True)


def decoder_step(name: str, path: Path) -> None:
    models().write_step(name, path)


def decoder_step_by_dynamo(name: str, path: Path) -> None:
    models().write_step(name, path, dynamo=True)


def models() -> Any:
    """Return the module `benchmarks.zoo.models`, which reads the sizes above."""
    return import_module("benchmarks.zoo.models")


def picture_network(name: str, path: Path) -> None:
    import torch

    torchvision_without_ops()
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")()
    for option in ("num_hidden_layers", "decoder_num_hidden_layers"):
        if hasattr(config, option) and not hasattr(config, "depths"):
            setattr(config, option, 2)
    model = getattr(transformers, f"{name}Model")(config)
    size = getattr(config, "image_size", 224)
    size = size if isinstance(size, int) else size[0]
    from_torch(module_of(model, "pixel_values"), (torch.randn(1, 3, size, size),), path)


def sound_network(name: str, path: Path) -> None:
    import torch

    torchvision_without_ops()
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")()
    config.num_hidden_layers, config.hidden_dropout, config.layerdrop = 2, 0.0, 0.0
    model = getattr(transformers, f"{name}Model")(config)
    is_wave = model.main_input_name == "input_values" and not hasattr(config, "num_mel_bins")
    shape = (1, 8000) if is_wave else (1, getattr(config, "max_length", 100), getattr(config, "num_mel_bins", 80))
    from_torch(module_of(model, model.main_input_name), (torch.randn(shape),), path)


def pair_network(name: str, path: Path) -> None:
    """Write a network that scores how well pictures and texts match."""
    import torch

    torchvision_without_ops()
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")()
    for part in (config.text_config, config.vision_config):
        part.num_hidden_layers = 2
    model = getattr(transformers, f"{name}Model")(config)
    size = config.vision_config.image_size
    ids = torch.randint(3, TOKENS, (2, 16))
    from_torch(module_of(model, "input_ids", "pixel_values"), (ids, torch.randn(1, 3, size, size)), path)


def estimator(name: str, path: Path) -> None:
    import numpy as np
    from skl2onnx import to_onnx
    from sklearn.base import is_classifier
    from sklearn.utils import all_estimators

    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 6)).astype("f4")
    y = (x[:, 0] + x[:, 1] * x[:, 2] > 0).astype(int) + (x[:, 3] > 1)
    if name.endswith("NB") and name != "GaussianNB" or name == "NMF":
        x = np.abs(x)
    kind = dict(all_estimators())[name]
    made = kind(random_state=0) if "random_state" in kind().get_params() else kind()
    made.fit(x, y)
    options = {"zipmap": False} if is_classifier(made) else None
    path.write_bytes(to_onnx(made, x[:1], options=options).SerializeToString())


FAMILIES: dict[str, Family] = {
    "torchvision": Family(
        """
        alexnet convnext_tiny densenet121 densenet169 efficientnet_b0 efficientnet_b3 efficientnet_v2_s
        googlenet inception_v3 maxvit_t mnasnet0_5 mnasnet1_0 mobilenet_v2 mobilenet_v3_large mobilenet_v3_small
        regnet_x_400mf regnet_y_400mf resnet18 resnet50 resnext50_32x4d shufflenet_v2_x0_5 shufflenet_v2_x1_0
        squeezenet1_0 squeezenet1_1 swin_t swin_v2_t vgg11 vit_b_16 wide_resnet50_2
        """.split(),
        torchvision_network,
    ),
    "segmentation": Family(
        """
        deeplabv3_mobilenet_v3_large fcn_resnet50 lraspp_mobilenet_v3_large
        """.split(), segmentation),
    "video": Family(
        """
        mc3_18 r2plus1d_18 r3d_18 s3d swin3d_t
        """.split(), video),
    "detection": Family(
        """
        fasterrcnn_mobilenet_v3_large_320_fpn fasterrcnn_resnet50_fpn fcos_resnet50_fpn maskrcnn_resnet50_fpn
        retinanet_resnet50_fpn ssdlite320_mobilenet_v3_large
        """.split(),
        detector,
    ),
    "timm": Family(
        """
        botnet26t_256 caformer_s18 cait_xxs24_224 coat_lite_tiny coat_tiny coatnet_0_224 coatnext_nano_rw_224
        convformer_s18 convit_tiny convmixer_768_32 convnext_zepto_rms cpubone_nano crossvit_9_240 crossvit_tiny_240
        cs3darknet_focus_s cs3sedarknet_xdw cspdarknet53 cspnext_tiny cspresnet50 darknet53 darknetaa53 davit_tiny
        deit3_small_patch16_224 deit_tiny_patch16_224 densenetblur121d dla34 dla46x_c dla60_res2net dpn68 eca_nfnet_l0
        edgenext_xx_small efficientformer_l1 efficientformerv2_s0 efficientnet_b0_gn efficientnet_blur_b0
        efficientvim_m1 efficientvit_b0 efficientvit_m0 ese_vovnet19b_dw eva02_tiny_patch14_224 fasternet_t0
        fastvit_sa12 fastvit_t8 fbnetc_100 fbnetv3_b flexivit_small focalnet_tiny_srf gc_efficientnetv2_rw_t
        gcresnext26ts gcvit_xxtiny gernet_s ghostnet_100 ghostnetv2_100 gmixer_12_224 gmlp_s16_224 halonet26t
        haloregnetz_b hardcorenas_a hgnet_tiny hgnetv2_b0 hiera_tiny_224 hieradet_small hrnet_w18_small iformer_s
        inception_next_tiny inception_resnet_v2 inception_v4 lambda_resnet26t lcnet_050 lcnetv2_small legacy_seresnet18
        legacy_xception levit_128 levit_conv_128 lowformer_b0 mambaout_femto maxvit_nano_rw_256 maxvit_rmlp_pico_rw_256
        mixer_s32_224 mixnet_s mobilenet_edgetpu_v2_xs mobilenetv1_100 mobilenetv4_conv_small
        mobilenetv4_hybrid_medium_075 mobileone_s0 mobilevit_xxs mobilevitv2_050 mvitv2_tiny nest_tiny nextvit_small
        nf_ecaresnet26 nf_regnet_b0 nf_resnet50 nfnet_f0 pit_ti_224 pit_xs_distilled_224 pnasnet5large poolformer_s12
        poolformerv2_s12 pvt_v2_b0 rdnet_tiny regnetz_b16 regnetz_c16_evos repghostnet_050 repvgg_a0 repvit_m0_9
        res2net50_14w_8s resmlp_12_224 resnest14d resnest50d_1s4x24d resnet50_gn resnetv2_50 resnetv2_50d_evos
        resnetv2_50d_frn rexnet_100 sebotnet33ts_256 selecsls42b semnasnet_075 sequencer2d_s seresnext26d_32x4d
        shvit_s1 skresnet18 spnasnet_100 starnet_s050 starnet_s1 swiftformer_xs swinv2_cr_tiny_ns_224
        swinv2_tiny_window8_256 tf_efficientnet_b0 tiny_vit_5m_224 tinynet_e tnt_s_legacy_patch16_224 tnt_s_patch16_224
        tresnet_m twins_pcpvt_small twins_svt_small vgg11_bn visformer_tiny vit_relpos_small_patch16_224
        vit_tiny_patch16_224 vit_tiny_patch16_dinov3_qkvb vit_tiny_r_s16_p8_224 vitamin_small_224 volo_d1_224 vovnet39a
        xception41 xception41p xception71 xcit_nano_12_p16_224
        """.split(),
        timm_network,
    ),
    "timm-dynamo": Family(
        """
        coat_lite_mini convnext_atto_ols convnextv2_atto csatv2 cspnext_s eca_halonext26ts edgenext_x_small
        efficientnet_cc_b0_4e efficientvim_m2 efficientvit_b1 fasternet_t1 ghostnetv3_100 hgnetv2_b1 iformer_t
        lamhalobotnet50ts_256 levit_conv_128s lowformer_b1 mobilenetv3_small_050 mobilenetv4_conv_blur_medium
        mobilevit_xs poolformer_s24 resnet10t rexnetr_100 starnet_s100 swin_s3_tiny_224 vit_dwee_patch16_reg1_gap_256
        vit_pwee_patch16_reg1_gap_256 vit_small_patch32_224 xcit_tiny_12_p16_224
        """.split(),
        timm_by_dynamo,
    ),
    "encoders": Family(
        """
        Albert Bert BigBird Camembert ConvBert Data2VecText Deberta DebertaV2 DistilBert Electra Ernie Esm FNet
        Flaubert Funnel IBert Longformer Luke MPNet MegatronBert MobileBert ModernBert Nezha RemBert RoCBert
        RoFormer Roberta RobertaPreLayerNorm SqueezeBert XLM XLMRoberta XLNet Xmod Yoso
        """.split(),
        text_network,
    ),
    "decoders": Family(
        """
        BioGpt Bloom CTRL CodeGen Cohere Falcon GPT2 GPTBigCode GPTJ GPTNeo GPTNeoX Gemma Gemma2 Granite Helium
        Llama Mamba Mistral Mpt Nemotron OPT Olmo Olmo2 OpenAIGPT Phi Phi3 Qwen2 Qwen3 SmolLM3 StableLm
        Starcoder2 XGLM
        """.split(),
        text_network,
    ),
    "encoder-decoders": Family(
        """
        Bart BigBirdPegasus Blenderbot LED LongT5 M2M100 MBart MT5 Marian Pegasus PLBart SwitchTransformers T5
        """.split(),
        text_network,
    ),
    "texts-dynamo": Family(
        """
        Albert Bert Bloom DistilBert Electra FNet GPT2 GPTNeoX Gemma2 Llama ModernBert MPNet OPT Olmo2 Phi3 Qwen3
        RoFormer T5
        """.split(),
        text_by_dynamo,
    ),
    "pictures": Family(
        """
        Beit Bit ConvNext ConvNextV2 Cvt DPT Data2VecVision DeiT Dinov2 Dinov2WithRegisters EfficientNet FocalNet
        Hiera IJepa Levit MgpstrModel MobileNetV1 MobileNetV2 MobileViT MobileViTV2 PoolFormer Pvt PvtV2 RegNet
        ResNet Segformer Swiftformer Swin Swinv2 TextNet ViT ViTMAE ViTMSN VitDet Yolos
        """.split(),
        picture_network,
    ),
    "sounds": Family(
        """
        AST Data2VecAudio Hubert SEW SEWD UniSpeech UniSpeechSat Wav2Vec2 Wav2Vec2Bert Wav2Vec2Conformer WavLM
        """.split(),
        sound_network,
    ),
    "pairs": Family(
        """
        AltCLIP Blip CLIP CLIPSeg ChineseCLIP GroupViT Siglip Siglip2
        """.split(),
        pair_network,
    ),
    "models": Family(
        """
        ArceeModel BambaModel BartForConditionalGeneration BertForQuestionAnswering BertGenerationEncoder
        BitNetModel BlenderbotSmallModel BrosModel CanineModel Cohere2Model DPRContextEncoder
        DebertaV2ForMaskedLM DogeModel Dots1Model ElectraForTokenClassification Ernie4_5Model Ernie4_5_MoeModel
        ErnieForPreTraining EsmForMaskedLM EuroBertModel Exaone4Model FSMTModel FalconH1Model FalconMambaModel
        FlexOlmoModel FunnelBaseModel GPTNeoXJapaneseModel Gemma3TextModel Glm4MoeModel GptOssModel
        GraniteMoeHybridModel GraniteMoeModel GteModel HeliumForCausalLM HunYuanDenseV1Model ImageGPTModel
        JambaModel JetMoeModel JinaEmbeddingsV3Model LayoutLMModel Lfm2Model LlamaForSequenceClassification
        Mamba2Model MarianMTModel MarkupLMModel MiniCPM3Model MiniMaxModel MinistralModel MixtralForCausalLM
        MobileBertForSequenceClassification MraModel MvpModel NanoChatModel NemotronHModel NllbMoeModel
        NomicBertModel NystromformerModel Olmo3Model OlmoeModel PLBartForConditionalGeneration PegasusXModel
        PersimmonModel PhimoeModel ProphetNetModel Qwen2MoeModel Qwen3MoeModel RecurrentGemmaModel
        RobertaForSequenceClassification RwkvModel SeedOssModel SplinterModel SwitchTransformersEncoderModel
        T5EncoderModel T5ForConditionalGeneration T5GemmaModel UMT5Model UltrabertModel VaultGemmaModel
        VisualBertModel XLMRobertaXLModel xLSTMModel
        """.split(),
        text_model,
    ),
    "models-wide": Family(
        """
        BartForConditionalGeneration BertForQuestionAnswering Cohere2Model DebertaV2ForMaskedLM EuroBertModel
        Exaone4Model FalconMambaModel Gemma3TextModel LayoutLMModel LlamaForSequenceClassification
        NomicBertModel NystromformerModel Olmo3Model T5EncoderModel
        """.split(),
        wide_text_model,
    ),
    "models-dynamo": Family(
        """
        ApertusModel BartForConditionalGeneration BertForQuestionAnswering Cohere2Model DebertaV2Model
        DiffLlamaModel EuroBertModel Exaone4Model FalconMambaModel Gemma3TextModel Glm4Model GptOssModel
        LayoutLMModel Lfm2Model Mamba2Model NomicBertModel NystromformerModel PersimmonModel
        RecurrentGemmaModel RwkvModel T5ForConditionalGeneration xLSTMModel
        """.split(),
        text_model_by_dynamo,
    ),
    "steps": Family(
        """
        BloomForCausalLM FalconForCausalLM GPTNeoXForCausalLM LlamaForCausalLM MistralForCausalLM
        MixtralForCausalLM OPTForCausalLM PhiForCausalLM Qwen2ForCausalLM Qwen3ForCausalLM
        """.split(),
        decoder_step,
    ),
    "steps-dynamo": Family(
        """
        Gemma2ForCausalLM LlamaForCausalLM OPTForCausalLM Qwen2ForCausalLM
        """.split(),
        decoder_step_by_dynamo,
    ),
    "scikit-learn": Family(
        """
        ARDRegression AdaBoostClassifier AdaBoostRegressor BaggingClassifier BaggingRegressor BayesianRidge
        BernoulliNB Binarizer CategoricalNB ComplementNB DecisionTreeClassifier DecisionTreeRegressor ElasticNet
        ElasticNetCV ExtraTreeClassifier ExtraTreeRegressor ExtraTreesClassifier ExtraTreesRegressor
        FactorAnalysis FastICA FunctionTransformer GammaRegressor GaussianMixture GaussianNB
        GaussianProcessRegressor GaussianRandomProjection GradientBoostingClassifier GradientBoostingRegressor
        HuberRegressor IncrementalPCA IsolationForest KBinsDiscretizer KMeans KNNImputer KNeighborsClassifier
        KNeighborsRegressor KNeighborsTransformer KernelPCA Lars LarsCV Lasso LassoCV LassoLars LassoLarsIC
        LinearDiscriminantAnalysis LinearRegression LinearSVC LinearSVR LocalOutlierFactor LogisticRegression
        LogisticRegressionCV MLPClassifier MLPRegressor MaxAbsScaler MinMaxScaler MiniBatchKMeans MultinomialNB
        NearestNeighbors NeighborhoodComponentsAnalysis Normalizer NuSVC NuSVR OneClassSVM OneHotEncoder
        OrdinalEncoder OrthogonalMatchingPursuit OrthogonalMatchingPursuitCV PCA PLSRegression
        PassiveAggressiveClassifier Perceptron PoissonRegressor PolynomialFeatures PowerTransformer
        QuadraticDiscriminantAnalysis QuantileRegressor QuantileTransformer RANSACRegressor
        RadiusNeighborsClassifier RandomForestClassifier RandomForestRegressor RandomTreesEmbedding Ridge
        RidgeCV RidgeClassifier RidgeClassifierCV RobustScaler SGDClassifier SGDOneClassSVM SGDRegressor SVC SVR
        SelectFpr SelectKBest SelectPercentile SimpleImputer StandardScaler TheilSenRegressor TruncatedSVD
        TweedieRegressor VarianceThreshold
        """.split(),
        estimator,
    ),
}  # fmt: skip


def write_one(family: str, name: str, path: Path, failure: Path) -> None:
    """Write one architecture, or the traceback to `failure`."""
    try:
        FAMILIES[family].write(name, path)
    except BaseException:  # packages end with any
        failure.write_text(traceback.format_exc())
